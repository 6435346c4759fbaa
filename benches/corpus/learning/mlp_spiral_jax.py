"""mlp_spiral by JAX, with its gradients from jax.grad."""

import jax
import jax.numpy as jnp
import numpy as np

jax.config.update("jax_enable_x64", True)


def loss(parameters, X, y, reg):
    W, b, W2, b2 = parameters
    scores = jnp.maximum(0, X @ W + b) @ W2 + b2
    logs = scores - jax.scipy.special.logsumexp(scores, axis=1, keepdims=True)
    return -jnp.mean(logs[jnp.arange(X.shape[0]), y]) + 0.5 * reg * (jnp.sum(W * W) + jnp.sum(W2 * W2))


@jax.jit
def update(parameters, X, y, step_size, reg):
    value, gradients = jax.value_and_grad(loss)(parameters, X, y, reg)
    return value, [p - step_size * g for p, g in zip(parameters, gradients)]


def main(X, y, h, steps, K=3, step_size=1.0, reg=1e-3):
    rng = np.random.default_rng(1)
    D = X.shape[1]
    parameters = [0.01 * rng.standard_normal((D, h)), np.zeros((1, h)), None, np.zeros((1, K))]
    parameters[2] = 0.01 * rng.standard_normal((h, K))
    losses = []
    for _ in range(steps):
        value, parameters = update(parameters, X, y, step_size, reg)
        losses.append(value)
    W, b, W2, b2 = parameters
    predicted = jnp.argmax(jnp.maximum(0, X @ W + b) @ W2 + b2, axis=1)
    return losses, W, W2, np.bool_(np.mean(np.asarray(predicted) == y) > 0.4)
