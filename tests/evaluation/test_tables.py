"""JSON, CSV and text of one evaluation hold the same numbers."""

import json
import math
from dataclasses import replace

import numpy as np

from credro.evaluation import best_score, csv_rows, errors_table, evaluate, results_table
from tests.evaluation.common import FAR, KNOWN, NEAR, ensemble


def test_json_csv_and_text_hold_the_same():
    found = evaluate(ensemble(), KNOWN, {"far-away": FAR}, ["de"], name="mine")
    result = json.loads(json.dumps(found.to_json(), allow_nan=False))["results"][0]
    header, [row] = csv_rows([found])
    cells = dict(zip(header, row, strict=True))
    assert cells["auroc:far-away"] == result["ood"]["far-away"]["auroc"]
    assert (cells["run"], cells["member_max"]) == ("mine", result["members"]["max"])
    text = results_table([found]).splitlines()[-1].split()
    assert text == [
        "DE",
        f"{100 * result['accuracy']:.2f}",
        f"{100 * result['ece']:.2f}",
        f"{100 * result['mean_auroc']:.2f}",
    ]


def test_runs_with_different_ood_sets_share_a_table():
    first = evaluate(ensemble(), KNOWN, {"far": FAR}, ["de"], name="first")
    second = evaluate(ensemble(), KNOWN, {"near": NEAR}, ["de"], name="second")
    lines = [line.split() for line in results_table([first, second]).splitlines()[-2:]]
    assert [(r[0], r[4] == "-", r[5] == "-") for r in lines] == [("first", False, True), ("second", True, False)]
    assert math.isnan(evaluate(ensemble(), KNOWN, methods=["de"])["de"].mean_auroc)


def test_columns_are_named_only_where_they_tell_something_apart():
    plain = evaluate(ensemble(), KNOWN, {"far": FAR}, ["de"], name="mine")
    calibrated = evaluate(ensemble(temperatures=[2.0] * 4), KNOWN, {"far": FAR}, ["de"], name="other")
    assert "run" not in results_table([plain]).split()
    assert "as" not in results_table([plain]).split()
    rows = [line.split()[:3] for line in results_table([plain, calibrated]).splitlines()[-3:]]
    assert rows == [["mine", "DE", "plain"], ["other", "DE", "plain"], ["other", "DE", "calibrated"]]


def test_the_table_of_errors_has_what_the_results_have():
    found = evaluate(ensemble(), KNOWN, methods=["de", "crewra"])
    for line, result in zip(errors_table([found]).splitlines()[-2:], found.results, strict=True):
        scores = [getattr(e, kind) for kind in ("auroc", "area", "accuracy_at_90") for e in result.errors.values()]
        assert line.split()[1:] == [f"{100 * score:.2f}" for score in scores]


def with_aurocs(result, aurocs):
    errors = zip(result.errors.items(), aurocs, strict=True)
    return replace(result, errors={name: replace(e, auroc=a) for (name, e), a in errors})


def test_the_sentence_says_which_score_finds_errors():
    found = evaluate(ensemble(), KNOWN, methods=["de", "crewra"])
    assert "EU is for unfamiliar inputs" in best_score([found])

    def said(*aurocs, **changes):
        results = tuple(replace(with_aurocs(result, aurocs), **changes) for result in found.results)
        return best_score([replace(found, results=results)])

    assert said(0.6, 0.8, 0.7).startswith("Errors are found best by total here (in 2 of 2 rows)")
    assert "best by EU and total and 1 - max p" in said(0.5, 0.5, 0.5)
    assert said(np.nan, np.nan, np.nan, accuracy=1.0).startswith("Errors: every prediction is right")
    assert said(np.nan, np.nan, np.nan, accuracy=0.0).startswith("Errors: every prediction is wrong")
