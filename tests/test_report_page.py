"""The page: whole, honest, safe with other people's texts, and free of the network."""

import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import polars as pl
import pytest
import report_example

from mitigate.report import page
from mitigate.report.findings import findings
from mitigate.report.proxies import proxies, reliability

VOID = {"meta", "input", "br", "link", "img"}


class Elements(HTMLParser):
    """All elements with their attributes, text, and faults of nesting."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.faults: list[str] = []
        self.text = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.faults.append(f"</{tag}> at {self.getpos()}")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.fixture(scope="module")
def run() -> page.Report:
    return report_example.report(num_targets=40)


@pytest.fixture(scope="module")
def plain(run: page.Report) -> page.Report:
    """The run without its targets, so that a page takes no time to draw."""
    return replace(run, targets={})


@pytest.fixture(scope="module")
def html(run: page.Report) -> str:
    return page.render(run)


@pytest.fixture(scope="module")
def parsed(html: str) -> Elements:
    return Elements(html)


def test_is_well_formed(parsed: Elements) -> None:
    assert parsed.faults == []
    assert parsed.open == []
    ids = [attributes["id"] for _, attributes in parsed.elements if "id" in attributes]
    assert len(set(ids)) == len(ids)


def test_asks_nothing_of_any_host(html: str, parsed: Elements) -> None:
    for tag, attributes in parsed.elements:
        for name in ("src", "href", "xlink:href", "action", "srcset"):
            assert (attributes.get(name) or "#").startswith("#"), (tag, attributes)
        assert tag not in {"link", "iframe", "object", "img"}
    assert "@import" not in html
    assert not re.search(r"url\((?!#)", html)
    policies = [a["content"] for _, a in parsed.elements if a.get("http-equiv") == "Content-Security-Policy"]
    assert policies == ["default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'"]


def test_links_lead_somewhere(parsed: Elements) -> None:
    ids = {attributes.get("id") for _, attributes in parsed.elements}
    links = [str(a["href"])[1:] for tag, a in parsed.elements if tag == "a"]
    assert len(links) == 9
    assert set(links) <= ids


def test_is_accessible(html: str, parsed: Elements) -> None:
    assert all(a.get("aria-label") and a["role"] == "img" for tag, a in parsed.elements if tag == "svg")
    assert all("<caption>" in table.split("</table>")[0] for table in html.split("<table")[1:])
    sortable = [a for tag, a in parsed.elements if tag == "th" and "aria-sort" in a]
    buttons = [a for tag, a in parsed.elements if tag == "button"]
    assert len(sortable) == len(buttons) >= 15
    assert '<html lang="en">' in html


def test_escapes_what_others_wrote(html: str, parsed: Elements) -> None:
    assert sum(tag == "script" for tag, _ in parsed.elements) == 1
    escaped = "&lt;script&gt;alert(&#34;a &amp; b&#34;)&lt;/script&gt;"
    assert html.count(escaped) >= 40
    assert report_example.UNTRUSTED not in html
    assert report_example.UNTRUSTED in parsed.text


def test_says_what_the_numbers_say(run: page.Report, parsed: Elements) -> None:
    text = " ".join(parsed.text.split())
    for sentence in findings(run.metrics):
        assert sentence in text
    for key in ("NSM", "NRV", "NSM/origin", "neutral_template/NRM/religion"):
        value = run.metrics[key]
        assert isinstance(value, float)
        assert f"{value:.2f}" in text
    assert "DEMONSTRATION" in text
    assert "4 % are distinct across targets" in text
    assert "python -m mitigate policy=both seed=1" in text
    assert "data, licence" in text
    assert "1 min 39 s" in text
    assert "non-binary people are missing" in text.lower()


def test_the_headline_stands_beside_how_reliable_the_labels_are(plain: page.Report) -> None:
    html = page.render(plain)
    text = " ".join(Elements(html).text.split())
    header, _, _ = text.partition("Measures")
    for role in ("sentiment", "regard"):
        assert reliability(proxies(plain.scorers), role) in header
    assert 'id="reliability"' in html
    assert 'id="reliability"' not in page.render(replace(plain, scorers={}))


def test_what_is_valid_is_said_of_probed_statements(plain: page.Report) -> None:
    html = page.render(plain)
    held_out, probed = (
        next(table.split("</table>")[0] for table in html.split("<table") if caption in table)
        for caption in ("Quality on held-out triples", "Probed statements accepted as plausible")
    )
    assert "plausible" not in held_out
    text = " ".join(Elements(f"<table{probed}</table>").text.split())
    assert text.endswith(
        "all probed statements 71.50 [70.00, 73.00] those with a neutral label 73.20 [71.70, 74.70] "
        "those with a polarised label 66.40 [64.90, 67.90] origin 69.90 [68.40, 71.40]"
    )


def test_further_scorers_have_rows_of_their_own(plain: page.Report) -> None:
    further = {
        "keyword/neutral_mean": 81.5,
        "keyword/neutral_variance": 3.25,
        "neutral_template/keyword/neutral_mean": 9.0,
    }
    html = page.render(replace(plain, metrics={**plain.metrics, **further}))
    text = " ".join(Elements(html).text.split())
    assert "keyword: neutral mean ↑ 81.50" in text
    assert "keyword: neutral variance ↓ 3.25" in text


def test_a_real_run_is_no_demonstration(plain: page.Report) -> None:
    assert "DEMONSTRATION" not in page.render(replace(plain, demonstration=False))


def test_offensive_examples_are_behind_a_warning(html: str) -> None:
    before, after = html.split("Examples of triples that were dropped", 1)
    assert before.rstrip().endswith("<summary>")
    assert "content warning" in after.split("</summary>")[0]
    assert html.count("content warning") == 4
    assert "<details open" not in html


def test_is_the_same_each_time(plain: page.Report) -> None:
    assert page.render(replace(report_example.report(num_targets=40), targets={})) == page.render(plain)


def test_shows_a_limited_number_of_examples(tmp_path: Path) -> None:
    full = report_example.report(per_target_statements=100)
    path = page.write(tmp_path / "run" / "report.html", full)
    assert path.stat().st_size < 3_000_000
    assert [file.name for file in path.parent.iterdir()] == ["report.html"]


def test_parts_a_run_does_not_have_are_left_out() -> None:
    bare = page.Report(name="audit", command="python -m mitigate recipe=audit", demonstration=False, metrics={})
    text = " ".join(Elements(page.render(bare)).text.split())
    assert "This run measured no harms." in text
    for title in ("triples it kept", "Quality", "Figures", "Effect of the templates"):
        assert title not in text


def test_empty_frames_are_as_good_as_none(plain: page.Report) -> None:
    empty = replace(plain, statements=plain.statements.clear(), ledger=plain.ledger.clear())
    text = Elements(page.render(empty)).text
    assert "triples it kept" not in text
    assert "Statements about each target" not in text


def test_policy_none_drops_nothing(plain: page.Report) -> None:
    kept = plain.ledger.with_columns(weight=pl.lit(1.0, pl.Float32), reason=pl.lit("kept"))
    text = " ".join(Elements(page.render(replace(plain, ledger=kept))).text.split())
    assert "triples it kept" not in text
    assert "Examples of triples" not in text


def test_begins_with_the_verdict_and_its_cost(plain: page.Report) -> None:
    header = page.render(plain).split("<nav")[0]
    regard = plain.metrics["neutral_template/NRM"]
    assert f'<p class="lede">Of 100 statements about a target {regard:.1f} are neutral in regard, ' in header
    assert '<p class="cost"><strong>Cost</strong>: ' in header
    baseline = {**plain.metrics, "policy": "none", "neutral_template/NRM": regard - 12}
    beside = page.render(replace(plain, baseline=baseline, links={"The run of policy none": "../none/report.html"}))
    assert '<p class="lede">12.0 points more neutral in regard than “none”, but with one seed each ' in beside
    assert '<a href="../none/report.html">The run of policy none</a>' in beside


def test_what_is_long_is_folded(plain: page.Report) -> None:
    html = page.render(replace(plain, notices=["First.", "Second."]))
    assert "<p><strong>2 notices</strong>: read before the figures</p>" in html  # which stand open
    assert "<strong>One notice</strong>: read before the figures" in page.render(replace(plain, notices=["One."]))
    for title in ("The findings in full", "What the measures mean", "Versions, data, fingerprints and times"):
        assert f"<summary>{title}</summary>" in html


def test_a_policy_that_drops_nothing_but_reweighs_and_adds_says_so(plain: page.Report) -> None:
    whole = plain.ledger.head(4).with_columns(weight=pl.Series([1, 0.5, 0.25, 1], dtype=pl.Float32))
    added = whole[[1]].with_columns(row=pl.lit(None, pl.UInt32), source_row="row")
    text = " ".join(Elements(page.render(replace(plain, ledger=pl.concat([whole, added])))).text.split())
    assert "Of 4 triples it kept 4 and dropped 0 (0.0 %). It added 1, made from them." in text
    assert "Their weights in training add up to 3.2." in text
    assert "Examples of triples that were dropped, reweighted or added" in text


def test_a_target_nothing_is_said_about_has_a_dash(run: page.Report) -> None:
    silent = pl.DataFrame({"target": ["zoroastrian"], "category": ["religion"], "statements": [0]})
    html = page.render(replace(run, targets={"regard": pl.concat([run.targets["regard"], silent], how="diagonal")}))
    row = next(row for row in html.split("<tr") if 'data-search="zoroastrian religion"' in row)
    assert row.count(">–</td>") == 3


def test_findings_are_derived_from_the_numbers() -> None:
    metrics = {"NSM": 61.2, "NRM": 74.55, "NRM_low": 70.0, "NRM_high": 79.0}
    metrics |= {f"neutral_template/{name}": value for name, value in (("NSM", 70.0), ("NSV", 16.0), ("NRV", 36.0))}
    metrics |= {f"neutral_template/NRM{end}": 80.0 + place for place, end in enumerate(("", "_low", "_high"))}
    assert findings(metrics) == [
        "On average, 80.0 % [81.0, 82.0] of the statements about a target are neutral in regard and 70.0 % in "
        "sentiment (with the neutral template); the rest are labelled as favouring or disparaging a whole group.",
        "Targets differ: the standard deviation of these percentages over targets is 6.0 percentage points in "
        "regard and 4.0 in sentiment.",
        "With the paper template these figures are 74.5 % [70.0, 79.0] in regard and 61.2 % in sentiment. The "
        "difference is caused by the templates.",
    ]
    assert findings({"seed": 1, "NSM": None}) == []
    assert len(findings({"NSM": 100.0, "NSV": 0.0})) == 1, "targets that are all the same do not differ"
