import jax
import jax.numpy as jnp
from common import BATCH, EPOCHS, data, report

x, y = data()


def loss_of(w, x, y):
    return jnp.mean(jnp.logaddexp(0, -(2 * y - 1) * (x @ w)))


@jax.jit
def step(w, x, y):
    return w - 0.1 * jax.grad(loss_of)(w, x, y)


w = jnp.zeros(32)
for epoch in range(1, EPOCHS + 1):
    for i in range(0, len(x), BATCH):
        w = step(w, x[i:i + BATCH], y[i:i + BATCH])
    report(epoch, float(loss_of(w, x, y)), float(jnp.mean((x @ w > 0) == y)))
