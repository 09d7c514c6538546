"""The teacher's guide and the cheat sheet: complete, consistent with the repository, minutes that add up."""
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
NOTEBOOKS = ROOT / "notebooks"
GUIDE = (NOTEBOOKS / "TEACHING.md").read_text(encoding="utf-8")
PAGES = [NOTEBOOKS / "TEACHING.md", *sorted((NOTEBOOKS / "teaching").glob("*.md"))]
CHAPTERS = {c.split("\n")[0]: c for c in GUIDE.split("\n## ")}
PLANS = {p[:2]: p for p in re.split(r"^### (?=\d\d )", CHAPTERS["Lesson plans"], flags=re.M)[1:]}


LESSONS = [p.stem[:2] for p in sorted(NOTEBOOKS.glob("[0-9]*.ipynb"))]


def test_every_lesson_has_a_plan_and_a_link_to_it():
    assert list(PLANS) == LESSONS[1:]
    assert re.findall(r"\[(\d\d)\]\(#\1-[\w-]+\)", GUIDE.partition("\n## ")[0]) == LESSONS[1:]
    for lesson, plan in PLANS.items():
        (name,) = [p.name for p in NOTEBOOKS.glob(f"{lesson}_*.ipynb")]
        for link in (f"({name})", f"(exercises/{name})", f"(solutions/{name})"):
            assert link in plan, f"{lesson}: {link}"


def test_every_lesson_has_its_cost_in_the_table_for_hosts():
    hosting = (NOTEBOOKS / "teaching" / "hosting.md").read_text(encoding="utf-8")
    assert re.findall(r"^\| (\d\d) [A-Z][^|]* \| [\d.]", hosting, re.M) == LESSONS


@pytest.mark.parametrize("lesson", PLANS)
def test_a_plan_fills_fifty_minutes_and_has_all_parts(lesson):
    plan = PLANS[lesson]
    minutes = [int(b or a) for a, b in re.findall(r"^\| (\d+)(?:–\d+ \((\d+)\))? \|", plan, re.M)]
    assert sum(minutes) == 50 and len(minutes) >= 8
    for part in ("by the end students can", "**predict 1.", "**predict 2.", "**predict 3", "expect", "board",
                 "**cut first", "**homework:**", "**90 minutes", "**exit ticket", "key"):
        assert part in plan.lower(), part
    for split in re.findall(r"[Ee]xpect (\d+(?: / \d+)+)\s*%\.", plan):
        assert sum(map(int, split.split(" / "))) == 100, split


def prose(page):
    return re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.S)


by_page = pytest.mark.parametrize("page", PAGES, ids=lambda p: p.stem)


@by_page
def test_links_and_anchors_lead_somewhere(page):
    text = prose(page)
    anchors = {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in re.findall(r"^#+ (.*)$", text, re.M)}
    for target in re.findall(r"\]\(([^)]+)\)", text):
        found = target[1:] in anchors if target.startswith("#") else (page.parent / target).exists()
        assert found or target.startswith("https://"), target
    for name in re.findall(r"python (tests/[\w./]+)", text):
        assert (ROOT / name).exists(), name


@by_page
def test_headings_do_not_skip_a_level(page):
    levels = [len(m) for m in re.findall(r"^(#+) ", prose(page), re.M)]
    assert levels[0] == 1 and levels.count(1) == 1 and all(b <= a + 1 for a, b in zip(levels, levels[1:]))


def test_grading_commands_are_those_of_the_readme():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    commands = [re.findall(r"^\.\./\.venv/bin/nbgrader (\w+)", text, re.M) for text in (readme, GUIDE)]
    assert commands[0] == commands[1] == ["generate_assignment", "autograde", "generate_feedback", "export"]


def test_concept_test_has_ten_questions_with_a_key():
    text = (NOTEBOOKS / "teaching" / "concept_test.md").read_text(encoding="utf-8")
    questions, key = text.split("<summary>Key</summary>")
    asked = re.findall(r"^\*\*(\d+)\.\*\*", questions, re.M)
    answers = dict(re.findall(r"^\| (\d+) \| ([a-d]) \|", key, re.M))
    assert asked == list(answers) == [str(i) for i in range(1, 11)]
    assert re.findall(r"^- ([a-d])\)", questions, re.M) == list("abcd") * 10
    assert max(list(answers.values()).count(letter) for letter in "abcd") <= 3


def test_glossary_is_in_order_and_complete():
    rows = re.findall(r"^\| ([^|]+) \| ([^|]*[\u4e00-\u9fff][^|]*|[^|]+) \| ([^|]+) \| (\d\d) \|$", GUIDE, re.M)
    terms = [row[0].rstrip(" *").lower() for row in rows]
    assert len(terms) >= 60 and terms == sorted(terms)


class Outline(HTMLParser):
    def __init__(self):
        super().__init__()
        self.tags, self.attributes = [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, *a) for a in attrs]


def test_cheat_sheet_stands_alone_and_is_accessible():
    outline = Outline()
    outline.feed((NOTEBOOKS / "teaching" / "cheat_sheet.html").read_text(encoding="utf-8"))
    assert outline.tags.count("h1") == 1 and outline.tags.count("h2") >= 8
    assert ("html", "lang", "en") in outline.attributes
    assert outline.tags.count("th") == sum(a[:2] == ("th", "scope") for a in outline.attributes)
    assert not {"script", "link", "img"} & set(outline.tags)
