"""A quantum Fourier transform on a state vector: gates as contractions over one axis of many, phases on slices, entropies.

Source: M. Nielsen, I. Chuang, "Quantum Computation and Quantum Information", chapter 5; state-vector simulators of quantum courses.
"""

import numpy as np

sizes = {"small": {"qubits": 7}, "large": {"qubits": 16}}

HADAMARD = np.array([[1, 1], [1, -1]], dtype=complex) / np.sqrt(2)


def apply(state, gate, qubit):
    return np.moveaxis(np.tensordot(gate, state, axes=([1], [qubit])), 0, qubit)


def controlled_phase(state, angle, control, target):
    key = [slice(None)] * state.ndim
    key[control] = key[target] = 1
    state = state.copy()
    state[tuple(key)] *= np.exp(1j * angle)
    return state


def entropy(state, first):
    rows = state.reshape(2**first, -1)
    weights = np.linalg.eigvalsh(rows @ rows.conj().T)
    weights = weights[weights > 1e-12]
    return -np.sum(weights * np.log2(weights))


def main(qubits):
    state = np.zeros((2,) * qubits, dtype=complex)
    state[(0,) * qubits] = 1
    for qubit in range(qubits):
        angle = 0.3 + 0.2 * qubit
        state = apply(state, np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]], dtype=complex), qubit)
    for qubit in range(qubits):
        state = apply(state, HADAMARD, qubit)
        for other in range(qubit + 1, min(qubit + 4, qubits)):
            state = controlled_phase(state, np.pi / 2 ** (other - qubit), other, qubit)
    state = state.transpose(range(qubits)[::-1])
    odds = np.abs(state.ravel()) ** 2
    ones = [np.sum(np.abs(np.take(state, 1, axis=qubit)) ** 2) for qubit in range(qubits)]
    return odds, np.array(ones), entropy(state, qubits // 2)
