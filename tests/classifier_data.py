"""A few made-up lines in the files that recipe=classifier trains its classifiers on."""

from pathlib import Path

from mitigate.studies import classifier


def shrink() -> None:
    """Train the classifiers of this process in seconds."""
    classifier.TEACHER.update(epochs=1)
    classifier.GATE.update(channels=4, epochs=1)
    classifier.NGRAM.update(buckets=1024, epochs=1)
    classifier.LAYERS.update(rank=2, layers=[0], epochs=1, copies={"written": 0.1, "polar": 1.5, "neutral": 0.2})
    for name, epochs in {"minilm": 1, "words": 2}.items():
        classifier.NETWORKS[name].update(width=8, epochs=epochs)


def write_regard(root: Path) -> Path:
    """Texts with a regard; every target of the list has one."""
    for folder in ("regard", "humans", "conceptnet100k"):
        (root / folder).mkdir(parents=True)
    said = [("thief", -1), ("table", 0), ("hero", 1)] * 20
    lines = [f"target{number}\t{label}\t{word} {number} is this person\n" for number, (word, label) in enumerate(said)]
    (root / "regard" / "bert_labels_conceptnet.tsv").write_text("".join(lines))
    for name in ("train_other", "dev", "test"):
        (root / "regard" / f"nlgbias_{name}.tsv").write_text(f"1\tXYZ was kind in {name}\n")
    for resource in ("ConceptNet", "GenericsKB", "COMeT"):
        (root / "humans" / f"{resource}_sentences.txt").write_text("lawyer is a thief\n" * 3)
        (root / "humans" / f"{resource}_bias_labels.txt").write_text("3\n3\n2\n")
    (root / "conceptnet100k" / "train100k.txt").write_text("IsA\tcat\tpet\nUsedFor\tpen\twrite\nIsA\tfork\ttool\n")
    return root


def write_plausibility(root: Path) -> Path:
    """True and false triples."""
    folder = root / "conceptnet100k"
    folder.mkdir(parents=True)
    said = [f"IsA\tcat {i}\tpet\nUsedFor\tpen {i}\twrite\n" for i in range(20)]
    (folder / "train100k.txt").write_text("".join(said))
    for name in ("dev1", "dev2", "test"):
        told = "IsA\tcat\tpet\t1\nUsedFor\tpen\twrite\t1\nIsA\tcat\twrite\t0\nUsedFor\tcat\tpen\t0\n"
        (folder / f"{name}.txt").write_text(told)
    return root
