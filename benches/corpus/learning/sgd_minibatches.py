"""Ridge regression by stochastic gradients on shuffled minibatches, with Adam, as a class with fit and predict.

Source: D. Kingma, J. Ba, "Adam" (2015); eriklindernoren's "ML-From-Scratch" in style.
"""

import numpy as np

sizes = {"small": {"n": 400, "d": 10, "epochs": 3}, "large": {"n": 20_000, "d": 50, "epochs": 4}}


def inputs(n, d, epochs):
    rng = np.random.default_rng(5)
    X = rng.standard_normal((n, d))
    return {"X": X, "y": X @ rng.standard_normal(d) + 0.1 * rng.standard_normal(n), "epochs": epochs}


class Adam:
    def __init__(self, rate=0.01, b1=0.9, b2=0.999):
        self.rate, self.b1, self.b2, self.t = rate, b1, b2, 0
        self.m = self.v = None

    def update(self, w, grad):
        if self.m is None:
            self.m = np.zeros(np.shape(grad))
            self.v = np.zeros(np.shape(grad))
        self.t += 1
        self.m = self.b1 * self.m + (1 - self.b1) * grad
        self.v = self.b2 * self.v + (1 - self.b2) * np.power(grad, 2)
        return w - self.rate * (self.m / (1 - self.b1**self.t)) / (np.sqrt(self.v / (1 - self.b2**self.t)) + 1e-8)


class Ridge:
    def __init__(self, alpha=1e-3, batch=64):
        self.alpha, self.batch, self.history = alpha, batch, []

    def fit(self, X, y, epochs):
        rng = np.random.default_rng(0)
        self.w = np.zeros(X.shape[1])
        optimiser = Adam()
        for _ in range(epochs):
            order = rng.permutation(len(X))
            for begin in range(0, len(X), self.batch):
                rows = order[begin : begin + self.batch]
                Xb, yb = X[rows], y[rows]
                error = Xb.dot(self.w) - yb
                self.w = optimiser.update(self.w, Xb.T.dot(error) / len(rows) + self.alpha * self.w)
            self.history.append(np.mean((self.predict(X) - y) ** 2))
        return self

    def predict(self, X):
        return X.dot(self.w)


def main(X, y, epochs):
    model = Ridge().fit(X, y, epochs)
    return model.w, model.history


tolerance = 1e-7
