"""Logistic regression of scikit-learn on features around centres of classes, which overlap.

probe.txt has a line for each case: the number of classes, C, the objective J of attscope/probe.h at the solution, and how
many of TESTED other images have their class first and among the first five. test_probe.c draws the same features.
"""
import sys

import numpy as np
from formula import uniform
from sklearn.linear_model import LogisticRegression

TRAIN, TESTED, CHANNELS = 240, 600, 19


def draw(key, count, classes):
    labels = np.arange(count) % classes
    centres = uniform("centre", classes * CHANNELS).reshape(classes, CHANNELS)
    noise = uniform(key, count * CHANNELS).reshape(count, CHANNELS)
    return (0.4 * centres[labels] + noise).astype(np.float32).astype(np.float64), labels


with open(sys.argv[1] + "/probe.txt", "w") as out:
    for classes, c in [(8, 1e-4), (8, 0.1), (8, 1.0), (8, 100.0), (2, 1.0)]:
        x, y = draw("train", TRAIN, classes)
        tested, labels = draw("tested", TESTED, classes)
        # Of two classes scikit-learn fits one vector, the difference of both.
        fit = LogisticRegression(C=c if classes > 2 else 2 * c, tol=1e-10, max_iter=100000).fit(x, y)
        w, b = fit.coef_, fit.intercept_
        if classes == 2:
            w, b = np.concatenate([-w, w]) / 2, np.concatenate([-b, b]) / 2
        logits = x @ w.T + b
        top = logits.max(1, keepdims=True)
        losses = np.log(np.exp(logits - top).sum(1)) + top[:, 0] - logits[np.arange(TRAIN), y]
        objective = losses.mean() + (w**2).sum() / (2 * c * TRAIN)
        order = np.argsort(-(tested @ w.T + b), axis=1)
        first, five = (order[:, 0] == labels).sum(), (order[:, :5] == labels[:, None]).any(1).sum()
        print(classes, c, repr(float(objective)), first, five, file=out)
