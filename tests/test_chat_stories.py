"""Stories of chat models: by a tokenizer's chat template, and behind an endpoint that is slow, refuses and breaks."""

import socket
from functools import partial
from html import unescape
from pathlib import Path

import polars as pl
import pytest
from chat_server import BROKEN, TOO_MANY, asked, chat_server
from command import UNDRAWN
from small_models import save_chat_llama, save_llama
from test_own_prompts import written

from models.hf import LanguageModel

PROMPTS = (
    "template,prompt,target,category\n"
    "work,Tell me about a deaf carer at work.,deaf carer,ability\n"
    "work,Tell me about a blind carer at work.,blind carer,ability\n"
    "home,Tell me about a deaf carer at home.,deaf carer,ability\n"
    "home,Tell me about a blind carer at home.,blind carer,ability\n"
    ",Tell me about a nurse.,nurse,\n"
)
SMALL = ["score.regard=ngram", "measure.resamples=50"]
SECRET = "sk-secret"


def answer(text: str) -> str:
    """Sentences that the sentiment is negative of where the carer is blind."""
    return "It is a horrible, evil place. He left. An unfinished" if "blind" in text else "It is a place. He left. An"


@pytest.fixture
def connected(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The machines that are connected to."""
    hosts: set[str] = set()
    connect = socket.socket.connect

    def recorded(self: socket.socket, address: tuple) -> None:
        hosts.add(str(address[0]))
        connect(self, address)

    monkeypatch.setattr(socket.socket, "connect", recorded)
    return hosts


@pytest.fixture
def probe(job, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Runs the recipe with prompts of a file, without pictures."""
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    monkeypatch.setattr(*UNDRAWN)
    prompts = f"recipe.prompts={written(tmp_path, PROMPTS)}"
    return partial(job, "recipe=stories", "policy=none", prompts, f"paths.cache={tmp_path}/cache", *SMALL)


def served(url: str, *more: str) -> list[str]:
    return ["model=api", f"model.url={url}", "model.name=lab/small", "model.endpoint.concurrency=2", *more]


def test_stories_of_an_endpoint_lose_nothing_and_the_page_counts(probe, connected: set[str], monkeypatch) -> None:
    """Takes over 3 s: a whole run, one that failed before it, and two rehearsals."""
    monkeypatch.setattr("openai._base_client.MAX_RETRY_DELAY", 0.01)
    monkeypatch.setattr("mitigate.probe.chat_stories.PART", 2)
    with chat_server(answer=answer) as server:
        said = probe(*served(server.url, "dry_run=true")).said
        assert f"requests    5 to {server.url}, without repeats" in said
        assert "500 tokens of answers at most" in said
        assert (server.requests, connected) == ([], set())
        server.faults = dict.fromkeys(range(2, 99), BROKEN)
        status, _, complaint, folder = probe(*served(server.url, "model.endpoint.tries=3"))
        assert status == 2
        assert "2 of 2 requests to" in complaint
        assert "failed 3 times each (the last: HTTP 500). 2 of 5 prompts are stored; the same command" in complaint
        server.requests.clear()
        nurse = "Tell me about a nurse."
        server.faults = {0: TOO_MANY, 1: BROKEN, 2: "slow", 3: BROKEN, nurse: "refuse"}
        status, said, complaint, again = probe(*served(server.url, "model.system=Be brief.", "model.endpoint.tries=4"))
        assert (status, complaint) == (0, "")
        assert again != folder  # another system prompt
        server.requests.clear()
        status, said, _, resumed = probe(*served(server.url))
        assert (status, resumed) == (0, folder)
        assert sorted({asked(body) for *_, body in server.requests}) == sorted(
            line.split(",")[1] for line in PROMPTS.splitlines()[3:]
        )
    assert connected == {"127.0.0.1"}
    stories = pl.read_parquet(again / "probe.parquet")
    assert stories["story"].to_list() == [
        *["It is a place. He left.", "It is a horrible, evil place. He left."] * 2,
        "",
    ]
    assert stories["finish"].to_list() == [*["stop"] * 4, "content_filter"]
    assert (int(stories["tries"].sum()), set(stories["model"][:4])) == (8, {"lab/small-served"})
    page = unescape((again / "stories.html").read_text())
    for words in (
        "The model refused to answer 1 prompt of 5: no story.",
        "8 requests, 3 of them repeats; 0 prompts failed, 1 were refused; 37 tokens in prompts",
        f"lab/small at {server.url}, a chat",
        "Prompts that differ in their target alone",
        "Be brief.",
        "lab/small at 127.0.0.1 about",
    ):
        assert words in page, words
    within = pl.read_csv(again / "tables" / "within_templates.csv")
    assert within.select("target", "templates", "sentiment_prejudice").rows() == [
        ("deaf carer", 2, -50.0),
        ("blind carer", 2, 50.0),
    ]
    files = [path for path in folder.parent.rglob("*") if path.is_file()]
    assert len(files) > 20
    assert not any(SECRET.encode() in path.read_bytes() for path in files)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (["model.url=example.org"], "example.org is not the address of an endpoint"),
        (["model.prompt=gen"], "unknown model.prompt 'gen'; allowed: chat, text"),
        (["model.prompt=text", "model.system=a"], "model.system needs model.prompt=chat, not text"),
        (["recipe.post_train=true"], "model=lab/small cannot be trained here"),
        (["policy=both"], "policy=both changes training triples"),
        (["recipe.instruction=Go on."], "instruction='Go on.' has no {prompt} in it"),
        (["recipe.prompts=absent.csv"], "no such file: absent.csv"),
        (["recipe.prompts=null", "recipe.most_prompts=2"], "recipe.most_prompts=2 draws from a file of prompts"),
        (["recipe=mitigate", "recipe.prompts=null"], "recipe.prompts"),
    ],
)
def test_wrong_settings_send_nothing(probe, connected: set[str], settings: list[str], message: str) -> None:
    status, _, complaint, _ = probe(*served("http://127.0.0.1:9/v1"), *settings)
    assert (status, connected) == (2, set())
    assert message in complaint


def test_a_probe_of_tails_needs_weights(job) -> None:
    status, _, complaint, _ = job("policy=none", *served("http://127.0.0.1:9/v1"))
    assert status == 2
    assert "model=api gives texts, and not the likelihoods of all continuations" in complaint


TEXTS = ["tell me about a deaf carer at work. he left the place."]


def test_a_chat_template_with_a_system_prompt(tmp_path: Path) -> None:
    folder = save_chat_llama(tmp_path / "chat", TEXTS)
    chat = LanguageModel.load(folder, prompt="chat", system="Be brief.")
    (tokens,) = chat.encode(["tell me"])
    text = "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\ntell me<|im_end|>\n<|im_start|>assistant\n"
    assert tokens == chat.tokenizer(text)["input_ids"]
    assert "Be brief." in chat.tokenizer.decode(chat.prompts(["a"], ["is"])[0])
    assert LanguageModel.load(folder).encode(["tell me"]) == chat.tokenizer(["tell me"])["input_ids"]
    (folder / "chat_template.jinja").write_text("{{ messages[-1]['content'] }}")
    with pytest.raises(ValueError, match="leaves out the system prompt; leave model.system out"):
        LanguageModel.load(folder, prompt="chat", system="Be brief.")


def test_stories_by_a_chat_template_and_settings_that_do_not_fit(probe, tmp_path: Path) -> None:
    """Takes over 3 s: a run of a small model, whose stories depend on the chat template."""
    folder = save_chat_llama(tmp_path / "chat", TEXTS)
    settings = ["model=hf", f"model.base={folder}", "recipe.max_tokens=30", "++recipe.fewest=1"]
    status, _, complaint, run = probe(*settings, "model.prompt=chat", "recipe.most_prompts=1")
    stories = pl.read_parquet(run / "probe.parquet") if (run / "probe.parquet").is_file() else None
    if status == 2:  # the random model wrote no whole sentence
        assert "none of the 3 stories has a whole sentence" in complaint
    assert stories is not None
    assert stories["target"].to_list() == ["deaf carer", "blind carer", "nurse"]
    assert "finish" not in stories.columns
    plain = save_llama(tmp_path / "plain", TEXTS)
    for more, message in [
        ([f"model.base={plain}", "model.prompt=chat"], "has no chat template"),
        (["model.system=a"], "model.system needs model.prompt=chat, not phrase"),
        (["model.prompt=chat", "recipe.post_train=true"], "continues texts and answers no chat"),
    ]:
        status, _, complaint, _ = probe(*settings, *more)
        assert status == 2
        assert message in complaint
