"""What a policy drops of your own triples, and how neutral the others are. python own_triples.py triples.csv"""

import sys

import mitigate

triples = mitigate.read_triples(sys.argv[1])
labelled = mitigate.label(triples)
policy = mitigate.Drop("mine", scorers=["sentiment", "regard"], template="neutral")
ledger = mitigate.apply_policy(policy, labelled)
dropped = ledger.filter(ledger["weight"] == 0)
print(f"{dropped.height} of {ledger.height} triples are dropped, such as:")
for statement, reason in dropped.head(3).select("statement", "reason").iter_rows():
    print(f"  {statement} ({reason})")

for name, rows in {"before": ledger, "after": ledger.filter(ledger["weight"] > 0)}.items():
    harms = mitigate.measure_harms(rows, intervals=mitigate.Bootstrap(resamples=1000, seed=1))
    print(f"NSM {name}: {harms['NSM']:.1f} % (95 % interval {harms['NSM_low']:.1f} to {harms['NSM_high']:.1f})")
