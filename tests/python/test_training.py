"""Training runs and reports, and how long calls are stopped."""

import os
import signal
import threading

import attscope
import numpy as np
from attscope import _context
from common import CLASSES, TINY, Case, main, pictures, tiny, write_data

OPTIONS = {"model": "vit_tiny_patch16_224", "batch_size": 8, "threads": 2, "workers": 1, **TINY}


class Trainings(Case):
    @classmethod
    def setUpClass(cls):
        write_data("data")

    def test_a_training_is_reported(self):
        seen = []
        training = attscope.train(
            "data", epochs=3, opt="adamw", lr=2e-3, warmup_epochs=0, output="runs", experiment="first",
            scale=(0.8, 1.0), hflip=0, no_aug=False, aa=None, progress=seen.append, **OPTIONS,
        )  # fmt: skip
        self.assertEqual((training.folder, training.epochs, training.updates), ("runs/first", 3, 18))
        self.assertEqual(list(training.history["epoch"]), [0, 1, 2])
        self.assertEqual(training.history["train_loss"][-1], training.train_loss)
        self.assertEqual(training.history["eval_top1"].max(), training.best_metric)
        self.assertEqual({p.stage for p in seen}, {"train", "evaluate"})
        self.assertEqual((seen[0].batches, seen[0].epochs), (6, 3))
        with training.open(threads=1) as network:
            self.assertEqual(network.class_names, CLASSES)
            network.measure("data", ["entropy"], maps=2, frame=False)

        report = training.report(title="Two < three")
        self.assertIn("first", report.html)
        shown = report._repr_html_()
        self.assertTrue(shown.startswith('<iframe srcdoc="'))
        self.assertNotIn("<script", shown)  # escaped
        self.assertEqual(shown.count('"'), 6)
        report.save("report.html")
        with open("report.html", encoding="utf-8") as file:
            self.assertEqual(file.read(), report.html)
        both = attscope.report([training, "runs/first"])
        self.assertLess(abs(len(both.html) - len(report.html)), 100)  # the same run counts once

        again = attscope.train(config="runs/first/args.yaml", resume="runs/first", epochs=3)
        self.assertEqual((again.epochs, len(again.history)), (3, 0))

    def test_a_callback_receives_each_record(self):
        records = []
        training = attscope.train(
            "data", epochs=2, output="runs", experiment="records", log_interval=1, measure="entropy",
            callback=records.append, **OPTIONS,
        )  # fmt: skip
        kinds = [record["kind"] for record in records]
        self.assertEqual((kinds[0], kinds[-1], kinds.count("step"), kinds.count("epoch")), ("begin", "end", 12, 2))
        steps = [record for record in records if record["kind"] == "step"]
        self.assertEqual([record["update"] for record in steps], list(range(1, 13)))
        self.assertTrue(all(isinstance(record["loss"], float) for record in steps))
        epochs = [record["eval_top1"] for record in records if record["kind"] == "epoch"]
        np.testing.assert_array_equal(epochs, training.history["eval_top1"])
        measured = next(record for record in records if record["kind"] == "measure")
        self.assertGreater(measured["entropy/blocks.0.attn/mean"], 0)

        def broken(record):
            if record["kind"] == "step":
                raise ZeroDivisionError(record["update"])

        with self.assertRaises(ZeroDivisionError) as caught:
            attscope.train(
                "data", epochs=2, output="runs", experiment="broken", log_interval=1, callback=broken, **OPTIONS
            )
        self.assertIsInstance(caught.exception.args[0], int)
        self.fails("callback is 5; expected a function", attscope.train, "data", callback=5, **OPTIONS)

    def test_a_training_is_counted_in_updates(self):
        seen = []
        training = attscope.train(
            "data", updates=8, eval_every=3, opt="adamw", sched="poly", warmup_updates=2, output="runs",
            experiment="updates", progress=seen.append, **OPTIONS,
        )  # fmt: skip
        self.assertEqual((training.epochs, training.updates), (1, 8))
        self.assertEqual(list(training.history["update"]), [3, 6, 8])
        self.assertEqual(list(training.history["epoch"]), [0, 0, 1])
        self.assertIn(training.best_update, (3, 6, 8))
        self.assertEqual((seen[-1].update, seen[-1].updates), (8, 8))

    def test_wrong_settings_are_refused(self):
        for options, part in [
            ({"epoch": 3}, "epoch"),
            ({"epochs": "many"}, "epochs"),
            ({"opt": "adm"}, "adm"),
            ({"epochs": {}}, "epochs is {}"),
            ({"epochs": []}, "epochs is []"),
            ({"epochs": [[1]]}, "epochs is [[1]]"),
            ({"scale": [True, 1.0]}, "scale is [True, 1.0]; expected a number"),
            ({"experiment": ["a", "b"]}, "experiment is ['a', 'b']; expected a number, a text,"),
            ({"epochs": True}, 'epochs: "true" is not a whole number'),
            ({"threads": "x"}, "threads is 'x'; expected a whole number"),
            ({"threads": True}, "threads is True"),
            ({"config": 5}, "config is 5; expected a text or a path"),
            ({"progress": 5}, "progress is 5; expected a function"),
            ({"model": "no_such_network"}, "no_such_network"),
            ({"config": "absent.yaml"}, "absent.yaml"),
        ]:
            self.fails(part, attscope.train, "data", **{**OPTIONS, **options})
        for data in (5, [], ["data"], True):
            self.fails("data_dir is", attscope.train, data, **OPTIONS)
        self.fails("absent", attscope.report, "absent", status="ERR_NOT_FOUND")
        self.fails("", attscope.report, [])
        self.fails("a run is a int; expected a folder", attscope.report, 3)


    def test_messages_name_options_as_in_python(self):
        for options, text in [
            ({"epochs": "many"}, 'epochs: "many" is not a whole number from 0 to 1000000'),
            ({"epoch": 3}, "unknown option epoch; did you mean epochs?"),
            ({"batch_szie": 3}, "unknown option batch_szie; did you mean batch_size?"),
            ({"layer_decay_min_scale": 0.5}, "layer_decay_min_scale and layer_decay_no_opt_scale are settings of "
             "layer_decay, which is not given"),
            ({"measure_every": 2}, "measure_every and measure_nodes need measure=LIST (names of instruments, or "
             "`all`)"),
            ({"num_classes": 2}, "num_classes 2, but the data has 4 classes, each of which needs an output"),
            ({"initial_checkpoint": "a--b"}, 'initial_checkpoint: there is no file or folder "a--b"'),
            ({"qqqqqqqq": 1}, "unknown option qqqqqqqq; see attscope train --help"),
        ]:  # fmt: skip
            with self.assertRaises(attscope.Error) as caught:
                attscope.train("data", **{**OPTIONS, **options})
            self.assertEqual(str(caught.exception), text)
        with self.assertLogs("attscope", "INFO") as log:
            attscope.train("data", epochs=0, **{**OPTIONS, "num_classes": None})
        self.assertIn("num_classes 4, as many as", " ".join(log.output))
        for message, text in [
            ("--batch-size (batch_size) 8: too few", "batch_size 8: too few"),
            ("fewer than one batch of 8 (--batch-size, batch_size)", "fewer than one batch of 8 (batch_size)"),
            ("--lr (train.lr): wrong", "lr (train.lr): wrong"),
            ("attscope convert --use-ema makes a file", "attscope convert --use-ema makes a file"),
            ("/data/my--set/x and a --no-aug b", "/data/my--set/x and a no_aug b"),
        ]:
            self.assertEqual(_context.with_python_names(message), text)

    def test_numbers_of_numpy_are_options(self):
        training = attscope.train(
            "data", **{**OPTIONS, "img_size": np.array([16, 16]), "epochs": np.int64(0), "lr": np.float32(0.5)}
        )
        self.assertEqual(training.epochs, 0)


class Stopping(Case):
    """The signal comes while the library runs: the callback of a batch sends it."""

    @classmethod
    def setUpClass(cls):
        write_data("data")

    def interrupted(self, call):
        """Calls call(progress), interrupted after the second batch. Returns the number of reported batches."""
        seen = []

        def progress(state):
            seen.append(state)
            if len(seen) == 2:
                os.kill(os.getpid(), signal.SIGINT)

        with self.assertRaises(KeyboardInterrupt) as caught:
            call(progress)
        self.assertEqual(caught.exception.__context__.status, "ERR_STOPPED")  # it says where a training run continues
        self.assertIs(signal.getsignal(signal.SIGINT), signal.default_int_handler)
        return len(seen)

    def test_every_call_of_a_network(self):
        """A thread sends the signal while the library runs: Python's own exception would be lost in a callback."""
        images = np.zeros((16, 3, 64, 64), np.float32)
        with tiny(img_size=64, depth=6, embed_dim=64) as network:
            for call in (
                lambda: network.predict(images),
                lambda: network.features(images),
                lambda: network.measure(images, "entropy", frame=False),
                lambda: network.attention(images[0], 0),
            ):
                call()
                main_thread = threading.main_thread().ident
                running = threading.Event()
                sent = threading.Thread(
                    target=lambda: running.wait() and signal.pthread_kill(main_thread, signal.SIGINT)
                )
                sent.start()
                with self.assertRaises(KeyboardInterrupt):
                    running.set()
                    for _ in range(1000):
                        call()
                sent.join()
                self.assertIs(signal.getsignal(signal.SIGINT), signal.default_int_handler)

    def test_exceptions_of_other_handlers_are_passed_on(self):
        def end(_number, _frame):
            raise TimeoutError("too long")

        images = np.zeros((64, 3, 64, 64), np.float32)
        former = signal.signal(signal.SIGALRM, end)
        try:
            with tiny(img_size=64, depth=6, embed_dim=64) as network:
                for call in [
                    lambda: network.measure(images, "entropy", batch_size=64, frame=False),
                    lambda: network.predict(images, batch_size=64),
                ] * 3:
                    call()
                    signal.setitimer(signal.ITIMER_REAL, 0.02)
                    with self.assertRaises(TimeoutError):
                        for _ in range(1000):
                            call()
                    self.assertIs(signal.getsignal(signal.SIGALRM), end)
                    self.assertEqual(len(network.predict(images)), 64)
        finally:
            signal.signal(signal.SIGALRM, former)

    def test_a_measurement(self):
        write_network("network")
        with attscope.open("network") as network:
            wanted = network.measure("data", "entropy", frame=False)
            count = self.interrupted(
                lambda progress: network.measure("data", "entropy", batch_size=2, progress=progress, frame=False)
            )
            self.assertEqual(count, 2)
            again = network.measure("data", "entropy", frame=False)
            np.testing.assert_array_equal(again["mean"], wanted["mean"])

    def test_a_training(self):
        def train(progress):
            attscope.train("data", epochs=50, experiment="stopped", progress=progress, **OPTIONS)

        self.assertEqual(self.interrupted(train), 2)
        folder = "output/train/stopped"
        batches = []
        self.fails(
            "stopped", attscope.train, config=f"{folder}/args.yaml", resume=folder, status="ERR_STOPPED",
            progress=lambda state: batches.append(state.batch) or False,
        )  # fmt: skip
        self.assertEqual(batches, [3])

    def test_callbacks(self):
        write_network("other")
        with attscope.open("other") as network:

            def measure(progress):
                return network.measure("data", "entropy", batch_size=2, progress=progress, frame=False)

            self.fails("stopped", measure, lambda state: False, status="ERR_STOPPED")
            self.fails("stopped", measure, lambda state: np.False_, status="ERR_STOPPED")
            with self.assertRaises(ZeroDivisionError):
                measure(lambda state: 1 / 0)
            self.fails("whose call is still running", measure, lambda state: network.predict(pictures(1)))
            for going_on in (None, 0, "", np.True_):
                self.assertEqual(measure(lambda state, result=going_on: result).images, 16)

    def test_images_in_memory(self):
        batches = []
        with tiny() as network:

            def measure(progress):
                return network.measure(pictures(5), "entropy", batch_size=2, progress=progress, frame=False)

            measure(lambda state: batches.append((state.batch, state.batches)))
            self.assertEqual(batches, [(1, 3), (2, 3), (3, 3)])
            self.fails("stopped", measure, lambda state: False, status="ERR_STOPPED")
            self.fails("stopped", measure, lambda state: np.False_, status="ERR_STOPPED")
            with self.assertRaises(KeyboardInterrupt):
                measure(lambda state: os.kill(os.getpid(), signal.SIGINT))
            self.assertEqual(measure(None).images, 5)


def write_network(folder):
    """A checkpoint with random weights."""
    attscope.train("data", epochs=0, output=".", experiment=folder, **OPTIONS)


if __name__ == "__main__":
    main()
