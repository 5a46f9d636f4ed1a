"""Opening and closing networks leaks nothing."""

import gc
import os

import attscope
from common import SANITIZED, Case, main, pictures, tiny


def tasks():
    """Threads of the process, those of C libraries included."""
    return len(os.listdir("/proc/self/task"))


OTHERS = tasks()  # of numpy


def resident():
    """Bytes of the process in memory."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")


class Memory(Case):
    def test_a_thousand_opens_leak_nothing(self):
        if SANITIZED:
            self.skipTest("the sanitizer keeps freed memory")
        images = pictures(2)

        def use(count):
            for i in range(count):
                network = tiny(threads=2)
                network.predict(images)
                if i % 10 == 0:
                    network.features(images)
                    network.attention(images[0], 0)
                    network.measure(images, "entropy", frame=False)
                if i % 2:
                    network.close()
            del network
            gc.collect()

        use(100)
        before = resident()
        use(1000)
        grown = resident() - before
        print(f"1000 opens: {grown} bytes more")
        self.assertLess(grown, 2 << 20)
        self.assertEqual(tasks(), OTHERS)

    def test_failed_opens_leak_no_threads(self):
        for _ in range(50):
            self.fails("absent", attscope.open, "absent")
        self.assertEqual(tasks(), OTHERS)


if __name__ == "__main__":
    main()
