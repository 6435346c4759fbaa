"""Q-learning on a cliff: a table, one state after the other, epsilon-greedy.

Source: R. Sutton, A. Barto, "Reinforcement Learning", example 6.6 (cliff walking).
"""

import numpy as np

sizes = {"small": {"episodes": 15}, "large": {"episodes": 500}}


def main(episodes, alpha=0.5, gamma=1.0, epsilon=0.1):
    rng = np.random.RandomState(3)
    rows, columns = 4, 12
    Q = np.zeros((rows, columns, 4))
    moves = [(-1, 0), (0, 1), (1, 0), (0, -1)]
    rewards = np.zeros(episodes)
    for episode in range(episodes):
        i, j = 3, 0
        steps = 0
        while (i, j) != (3, columns - 1) and steps < 200:
            if rng.rand() < epsilon:
                a = rng.randint(4)
            else:
                a = np.argmax(Q[i, j])
            di, dj = moves[a]
            i2, j2 = min(max(i + di, 0), rows - 1), min(max(j + dj, 0), columns - 1)
            r = -1
            if i2 == 3 and 0 < j2 < columns - 1:
                r, i2, j2 = -100, 3, 0
            Q[i, j, a] += alpha * (r + gamma * np.max(Q[i2, j2]) - Q[i, j, a])
            rewards[episode] += r
            i, j = i2, j2
            steps += 1
    return Q, rewards, Q.argmax(axis=2)
