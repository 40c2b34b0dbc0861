"""A generator trained on your own triples, and what it generates about two targets. Three steps show the calls."""

import mitigate

triples = mitigate.read_triples("triples.csv")
ledger = mitigate.apply_policy(mitigate.Policy("none"), triples)
settings = mitigate.TrainingSettings(max_steps=3, batch_size=16)
facts = mitigate.train_generator(ledger, mitigate.open_generator(), settings, model="model")
print(f"{facts['steps']} steps, loss {facts['train_loss']:.2f}")

generator = mitigate.open_generator("model")
probed = mitigate.probe_generator(
    generator, ["lawyer", "nurse"], ["CapableOf", "Desires"], beams=4, top=2, max_length=4
)
statements = mitigate.label(probed, ["sentiment"])
print(statements.select("statement", "sentiment", "log_prob"))
