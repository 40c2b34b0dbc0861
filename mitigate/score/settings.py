"""Settings of the scorers. conf/score/default.yaml names their classes, which take these settings as arguments."""

from typing import Literal

from mitigate.settings import Name, Parts, Place, Text, fact, group, place, served, setting


@group("score.bert")
class Bert:
    model: Place = setting("sequence classifier of regard: a folder, or a name on the Hugging Face hub")


@group("score.frames")
class Frames:
    run: Place | None = setting("finished run of recipe=frames, whose model the scorer frames uses")


@group("score.judge")
class Judge:
    model: Place | None = setting("language model that rates here: a folder, a name on the hub, or a GGUF file")
    url: Text | None = setting("OpenAI-compatible address, up to /v1; null: no text leaves this machine")
    name: Text | None = setting("name of the endpoint's model")
    key: Text | None = place("variable of the environment with the endpoint's key; null: no key is sent")


OF_JUDGE = ("judge.key", "judge.concurrency")  # how it is asked
FOLDER = "its folder: of a run of recipe=classifier; null: the shipped one"


@group("score")
class Score:
    sentiment: Name | None = served("scorer of sentiment: vader, or another of score.scorers")
    regard: Name | None = served("scorer of regard: minilm, ngram, bert, or another of score.scorers")
    extra: list[Name] = served("further scorers, such as [keyword,ngram]")
    plausibility: Parts | None = setting(f"plausibility classifier of what is probed; null: none; {FOLDER}")
    people_valid: Parts | None = setting(f"people-valid classifier of what is probed; null: none; {FOLDER}")
    critic: Parts | None = setting(f"people-valid classifier that policies rank and filter by; null: none; {FOLDER}")
    engine: Literal["local", "ray"] = place("where statements are labelled: in this process, or by workers of Ray")
    workers: int = place("number of Ray workers, each with a core of its own", ge=1, le=100_000)
    bert: Bert = fact()
    frames: Frames = fact()
    judge: Judge = fact()
    scorers: Parts = setting("scorers by name, each a class (_target_) and its arguments", where=OF_JUDGE)
