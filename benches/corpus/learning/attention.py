"""A block of a transformer: attention of several heads by einsum, a mask, layer norms and a feed-forward part, in f32.

Source: A. Vaswani et al., "Attention Is All You Need" (2017); "picoGPT"-like NumPy versions.
"""

import numpy as np

sizes = {"small": {"seq": 32, "d": 64, "heads": 4, "layers": 2}, "large": {"seq": 384, "d": 256, "heads": 8, "layers": 2}}


def inputs(seq, d, heads, layers):
    rng = np.random.default_rng(0)

    def w(*shape):
        return (rng.standard_normal(shape) * 0.05).astype(np.float32)

    blocks = [{"qkv": w(3, heads, d, d // heads), "out": w(heads, d // heads, d), "up": w(d, 4 * d), "down": w(4 * d, d)} for _ in range(layers)]
    return {"x": w(seq, d), "blocks": blocks}


def softmax(x):
    e = np.exp(x - np.max(x, axis=-1, keepdims=True))
    return e / np.sum(e, axis=-1, keepdims=True)


def gelu(x):
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi).astype(np.float32) * (x + np.float32(0.044715) * x**3)))


def layer_norm(x, eps=np.float32(1e-5)):
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + eps)


def main(x, blocks):
    n = x.shape[0]
    mask = (1 - np.tri(n, dtype=np.float32)) * np.float32(-1e10)
    for block in blocks:
        h = layer_norm(x)
        q, k, v = (np.einsum("sd,hdk->hsk", h, w) for w in block["qkv"])
        scores = np.einsum("hik,hjk->hij", q, k) / np.sqrt(np.float32(q.shape[-1]))
        heads = np.einsum("hij,hjk->hik", softmax(scores + mask), v)
        x = x + np.einsum("hik,hkd->id", heads, block["out"])
        h = layer_norm(x)
        x = x + gelu(h @ block["up"]) @ block["down"]
    return x, softmax(x @ x.T)
