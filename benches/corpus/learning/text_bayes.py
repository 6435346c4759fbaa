"""Naive Bayes on bags of words, and the words that tell most, from strings to counts.

Source: C. Manning, P. Raghavan, H. Schütze, "Introduction to Information Retrieval", chapter 13.
"""

import numpy as np

sizes = {"small": {"documents": 40, "length": 20}, "large": {"documents": 1200, "length": 120}}

WORDS = np.array(
    "ball goal team match score vote law party state tax chip code data network byte cell gene protein enzyme virus the a of and to in is it for on".split()
)


def inputs(documents, length):
    rng = np.random.default_rng(8)
    topic = rng.integers(4, size=documents)
    own = rng.random((documents, length)) < 0.3
    words = np.where(own, topic[:, None] * 5 + rng.integers(5, size=(documents, length)), 20 + rng.integers(10, size=(documents, length)))
    return {"texts": [" ".join(WORDS[row].tolist()) for row in words.tolist()], "labels": topic}


def main(texts, labels):
    vocabulary = {}
    rows, columns = [], []
    for d, text in enumerate(texts):
        for word in text.split():
            columns.append(vocabulary.setdefault(word, len(vocabulary)))
            rows.append(d)
    counts = np.zeros((len(texts), len(vocabulary)))
    np.add.at(counts, (rows, columns), 1)
    half = len(texts) // 2
    train, test = counts[:half], counts[half:]
    prior = np.bincount(labels[:half], minlength=4) / half
    likelihood = np.stack([train[labels[:half] == c].sum(axis=0) + 1 for c in range(4)])
    likelihood /= likelihood.sum(axis=1, keepdims=True)
    posterior = np.log(prior + 1e-12) + test @ np.log(likelihood).T
    predicted = np.argmax(posterior, axis=1)
    idf = np.log(len(texts) / np.count_nonzero(counts, axis=0))
    tfidf = counts * idf
    tfidf /= np.maximum(np.sqrt((tfidf**2).sum(axis=1, keepdims=True)), 1e-12)
    top = np.argsort(-likelihood / likelihood.mean(axis=0), axis=1, kind="stable")[:, :5]
    return predicted, np.mean(predicted == labels[half:]), tfidf @ tfidf[0], np.sort(top, axis=1)
