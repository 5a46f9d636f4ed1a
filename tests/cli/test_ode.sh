#!/bin/bash
# attscope ode: its tables, JSON, CSV, page, wrong flags and files.
. "$(dirname "$0")/lib.sh"

# Both sides of Euler's limit: 2 / SI = 1.2216e-4 for 63 points.
run 0 ode heat --method euler --step 1.2e-4
out_has 'heat: 63 equations, t = 0 .. 0.1, constant Jacobian'
out_has 'Reference: closed form.'
grep -Eq '^  euler +834 +0 +834 .* 0 \(limit 2\) +[0-9.]+e-0[0-9]$' stdout || fail "euler below its limit: $(grep euler stdout)"
run 0 ode heat --method euler --step 1.4e-4
grep -Eq '^  euler .* \(limit 2\) +diverged at t = ' stdout || fail "euler above its limit: $(grep euler stdout)"

# Theorem 2: Q SI tends to 1 / (2 sqrt 2) for these two eigenvalues.
run 0 ode linear --method rk4 --eigenvalues -1 -100
out_has 'Theorem 2, at the initial value: SAI = c SI + Q(SI)'
grep -Eq '^  lambda = -1e\+09 +1.0000e\+09 +7.0711e\+08 +0.7071 .* 0.3536 ' stdout || fail "theorem: $(cat stdout)"
run 0 ode vanderpol --method rk4 --mu 2
grep -Eq '^  rk4 .* [0-9.]+e-[0-9]+$' stdout || fail "no error of RK4 without a closed form: $(grep rk4 stdout)"
grep -Eq 'Reference: (BDF|RK4, with its steps doubled)' stdout || fail "reference: $(grep Reference stdout)"
! grep -q 'rtol 1e-06, atol' stdout || fail 'tolerances of methods that have none'
out_has 'It does not apply here: J is not symmetric.'

run 0 ode linear --method euler --method rk4 --step 0.25 --csv steps.csv --json steps.json
[ "$(wc -l <steps.csv)" -eq 10 ] || fail "lines of the CSV: $(cat steps.csv)"
[ "$(sed -n 2p steps.csv | cut -c1-26)" = 'euler,0,0.25,1000,707.1071' ] || fail "first step: $(sed -n 2p steps.csv)"
# the states of Euler on u1' = -u1, u2' = -1000 u2, and the one at the end, which has no step
grep euler steps.csv | sed 's/.*,\([^,]*,[^,]*\)$/\1/' >states
printf '%s\n' 1,1 0.75,-249 0.5625,62001 0.421875,-15438249 0.31640625,3844124001 | cmp - states ||
    fail "states of the CSV: $(cat states)"
[ "$(sed -n 6p steps.csv)" = 'euler,1,,,,,,0.31640625,3844124001' ] || fail "the end: $(sed -n 6p steps.csv)"
tr -d ' \n' <steps.json >flat.json
for part in '"components":["u1","u2"]' '"t":1,"state":[0.31640625,3844124001],' ',"state":[0.5625,62001]}'; do
    grep -qF -- "$part" flat.json || fail "the JSON lacks $part"
done
[ "$(grep -c '"stiffness_index"' steps.json)" -ge 8 ] || fail "steps of the JSON: $(cat steps.json)"
run 0 ode linear --method rk4 --csv -
[ "$(head -1 stdout)" = 'method,t,h,stiffness_index,sai,sai_simplified,nsi,state.u1,state.u2' ] || fail "CSV on stdout: $(head -1 stdout)"
[ "$(wc -l <stdout)" -eq 1002 ] || fail "the CSV on stdout has $(wc -l <stdout) lines"
run 0 ode linear --method rk4 --json -
grep -q '^{' stdout || fail "JSON on stdout: $(head -1 stdout)"

run 0 ode linear --method rk4 --page page.html
grep -q '"trajectory":' page.html || fail 'the page has no trajectory'

printf -- '-1 2\n0 -50\n' >matrix.txt
run 0 ode linear --matrix matrix.txt --method rk4
out_has 'linear: 2 equations'
out_has 'It does not apply here: J is not symmetric.'

usage '--points belongs to the system heat, not to linear' ode linear --points 3
usage '--mu belongs to the system vanderpol, not to heat' ode heat --mu 3
usage '--json and --csv both write to standard output: name another file for one of them' ode heat --json - --csv -
usage '--json and --csv both write to ./both: name another file for one of them' ode heat --json both --csv ./both
usage '--csv and --page both write to both: name another file for one of them' ode heat --csv both --page both
[ ! -e both ] || fail 'refused outputs were written'
run 0 ode linear --method rk4 --json /dev/null --csv /dev/null
usage '--eigenvalues and --matrix both give the matrix of linear: leave out one of them' \
    ode linear --eigenvalues -1 --matrix matrix.txt
usage '--method: there is no "rk5"; did you mean rk4?' ode heat --method rk5
run 1 ode vanderpal
err_has 'there is no system "vanderpal"; did you mean vanderpol?; the name of a file has a dot or a slash'
run 2 ode heat --method euler --step 1e-12
err_has '100000000000 steps of 1e-12 from 0 to 0.1, expected at most 200000'
run 1 ode no/such.ode
err_has 'no/such.ode'
run 1 ode heat --method rk4 --csv no/such/folder.csv
err_has 'no/such/folder.csv'
run 2 ode heat --method rk4 --end -1
err_has 'the interval ends at -1, expected a finite time after 0'
run 2 ode heat --method rk4 --end 0
err_has 'the interval ends at 0, expected a finite time after 0'
run 2 ode heat --method rk4 --step 0
err_has '--step'

# Systems from files, in builds with muParser.
printf "k = 2\nx' = -k * x\nx(0) = 1\n" >decay.ode
"$ATTSCOPE" ode decay.ode --method rk4 >stdout 2>stderr
if grep -q 'no muParser' stderr; then
    echo 'skipped in part: no muParser'
else
    out_has 'decay.ode: 1 equation, t = 0 .. 1'
    run 0 ode decay.ode --method rk4 --csv -
    out_has 'sai_simplified,nsi,state.x'
    printf "x' = -k * x\nx(0) = 1\n" >wrong.ode
    run 1 ode wrong.ode
    err_is <<<'attscope: wrong.ode: line 1, column 7: there is no name "k"'
    printf "x' = 1 / x\nx(0) = 0\n" >wrong.ode
    run 1 ode wrong.ode
    err_is <<<'attscope: wrong.ode: the derivative of x is inf at t = 0, expected a finite number'
fi

# All methods, in builds with SUNDIALS.
"$ATTSCOPE" ode heat --method rkf45 >stdout 2>stderr
if grep -q 'no SUNDIALS' stderr; then
    echo 'skipped in part: no SUNDIALS'
else
    run 0 ode vanderpol --mu 10
    out_has 'Reference: BDF with rtol 1e-10, atol 1e-13.'
    out_has '  rkf45, bdf: rtol 1e-06, atol 1e-09. Reference: '
    [ "$(grep -Ec '^  (euler|rk4|rkf45|bdf) .* [0-9.]+e[-+][0-9]+$' stdout)" -eq 4 ] || fail "four methods: $(cat stdout)"
    run 0 ode robertson --method rkf45 --method bdf --max-steps 500
    out_has 'rkf45  robertson: more than 500 steps are needed'
    run 2 ode robertson --method rkf45 --max-steps 500
    err_has 'robertson: more than 500 steps are needed; t = '
fi
finish
