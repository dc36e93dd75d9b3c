"""Writes statsmodels.json, the figures with which the tests of package anova compare.

Run in this directory, with statsmodels 0.14 or later:

    python3 golden.py
"""

import itertools
import json

import numpy as np
import pandas as pd
import patsy
import scipy.optimize
import scipy.stats
import statsmodels
import statsmodels.formula.api as smf
from statsmodels.stats.anova import anova_lm

CONFIDENCE = 0.95


def formula(variables, interactions):
    names = {v: v if numeric else f"C({v})" for v, numeric in variables.items()}
    terms = list(names.values())
    for interaction in interactions:
        for size in range(2, len(interaction) + 1):
            for some in itertools.combinations(interaction, size):
                term = ":".join(names[v] for v in some)
                if term not in terms:
                    terms.append(term)
    return terms


def plain(term):
    return ":".join(sorted(term.replace("C(", "").replace(")", "").split(":")))


def noncentrality(f, d1, d2, p):
    """The noncentrality at which the probability of at most f is p."""
    if scipy.stats.f.cdf(f, d1, d2) <= p:
        return 0.0
    high = 1.0
    while scipy.stats.ncf.cdf(f, d1, d2, high) > p:
        high *= 2
    return scipy.optimize.brentq(lambda x: scipy.stats.ncf.cdf(f, d1, d2, x) - p, 0, high,
                                 xtol=1e-12, rtol=1e-14)


def effect_size(f, d1, d2, runs):
    low = noncentrality(f, d1, d2, (1 + CONFIDENCE) / 2)
    high = noncentrality(f, d1, d2, (1 - CONFIDENCE) / 2)
    return low / (low + runs), high / (high + runs)


def compared(data, terms, full):
    """Type II tests as comparisons of models, which need no full rank."""
    table = {}
    for term in terms:
        factors = set(plain(term).split(":"))
        others = [t for t in terms if not factors <= set(plain(t).split(":"))]
        without = smf.ols("y ~ " + (" + ".join(others) or "1"), data).fit()
        with_term = smf.ols("y ~ " + " + ".join(others + [term]), data).fit()
        d1 = without.df_resid - with_term.df_resid
        squares = without.ssr - with_term.ssr
        f = squares / d1 / (full.ssr / full.df_resid)
        table[term] = (squares, d1, f, scipy.stats.f.sf(f, d1, full.df_resid))
    return table


def means(data, variables, interactions, model, term):
    """Means at the levels of a term: equal weights for the levels of the other factors."""
    own = term.split(":")
    values = {}
    for v, numeric in variables.items():
        levels = sorted(data[v].unique())
        if numeric:
            levels = [data[v].mean()]
        values[v] = levels
    design = patsy.dmatrix(" + ".join(formula(variables, interactions)), data).design_info
    assert list(design.column_names) == list(model.params.index)
    points = []
    for setting in itertools.product(*(values[v] for v in own)):
        grid = pd.DataFrame(
            [
                dict(zip(values, cell))
                for cell in itertools.product(*values.values())
                if all(dict(zip(values, cell))[v] == x for v, x in zip(own, setting))
            ]
        )
        row = np.asarray(patsy.dmatrix(design, grid)).mean(axis=0)
        test = model.t_test(row)
        low, high = test.conf_int(1 - CONFIDENCE)[0]
        points.append({
            "levels": [str(x) for x in setting],
            "mean": float(np.ravel(test.effect)[0]),
            "low": float(low),
            "high": float(high),
        })
    return points


def analyse(name, data, variables, interactions, full_rank=True):
    terms = formula(variables, interactions)
    model = smf.ols("y ~ " + " + ".join(terms), data).fit()
    runs = len(data)
    case = {
        "name": name,
        "columns": {v: [x.item() if hasattr(x, "item") else x for x in data[v]] for v in data},
        "covariates": [v for v, numeric in variables.items() if numeric],
        "factors": [v for v, numeric in variables.items() if not numeric],
        "interactions": [":".join(i) for i in interactions],
        "residual_squares": model.ssr,
        "residual_degrees": int(model.df_resid),
        "r2": model.rsquared,
        "adjusted_r2": model.rsquared_adj,
        "terms": {},
    }
    table = compared(data, terms, model)
    if full_rank:
        # The two definitions of type II agree.
        lm = anova_lm(model, typ=2)
        for term in terms:
            np.testing.assert_allclose(table[term][0], lm.loc[term, "sum_sq"], rtol=1e-6,
                                       atol=1e-7 * model.ssr)
            row = lm.loc[term]
            table[term] = (row["sum_sq"], row["df"], row["F"], row["PR(>F)"])
    for term in terms:
        squares, d1, f, p = (float(x) for x in table[term])
        mean = model.ssr / model.df_resid
        low, high = effect_size(f, d1, model.df_resid, runs)
        case["terms"][plain(term)] = {
            "degrees": int(round(d1)),
            "squares": squares,
            "f": f,
            "p": p,
            "partial_eta2": squares / (squares + model.ssr),
            "effect_low": low,
            "effect_high": high,
            "partial_omega2": max(0, (squares - d1 * mean) / (squares + (runs - d1) * mean)),
            "omega2": max(0, (squares - d1 * mean) / (model.centered_tss + mean)),
        }
    w, p = scipy.stats.shapiro(model.resid)
    case["normality"] = {"w": float(w), "p": float(p)}
    case["variances"] = {}
    for v in case["factors"]:
        groups = [data.index[data[v] == level] for level in sorted(data[v].unique())]
        f, p = scipy.stats.levene(*(model.resid[g] for g in groups), center="median")
        case["variances"][v] = {"statistic": float(f), "p": float(p)}
    case["means"] = {}
    if full_rank:
        for term in [plain(t) for t in terms]:
            own = term.split(":")
            if len(own) <= 2 and not any(variables[v] for v in own):
                case["means"][term] = means(data, variables, interactions, model, term)
    return case


def grid(random, levels, replications):
    cells = list(itertools.product(*levels.values())) * replications
    data = pd.DataFrame(cells, columns=list(levels))
    data["noise"] = random.normal(size=len(data))
    return data


def main():
    random = np.random.default_rng(20)
    cases = []

    d = grid(random, {"a": ["x", "y", "z"], "b": [1, 2]}, 4)
    d["y"] = 10 + d.b * 2 + (d.a == "z") * 3 + (d.a == "y") * d.b + d.noise
    cases.append(analyse("balanced", d.drop(columns="noise"), {"a": False, "b": False},
                         [("a", "b")]))

    d = grid(random, {"batch": [64, 128, 256, 512], "cpus": [1, 2, 4], "model": ["deep", "wide"]},
             3)
    d["y"] = np.exp(6 - 0.7 * np.log2(d.batch / 64) + 0.2 * (d.model == "deep") * d.cpus
                    + 0.1 * d.noise)
    d = d.drop(columns="noise").sample(frac=0.7, random_state=1).reset_index(drop=True)
    names = ["batch", "cpus", "model"]
    pairs = list(itertools.combinations(names, 2))
    cases.append(analyse("unbalanced", d, dict.fromkeys(names, False), pairs))
    cases.append(analyse("unbalanced, three-way", d, dict.fromkeys(names, False), [tuple(names)]))
    cases.append(analyse("main effects only", d, dict.fromkeys(names, False), []))
    cases.append(analyse("only covariates but one",
                         d, {"batch": True, "cpus": True, "model": False}, [tuple(names)]))

    d = grid(random, {"model": ["a", "b", "c"]}, 15)
    d["load"] = random.uniform(0, 100, len(d))
    d["y"] = (1e6 + 300 * d.load + 5e3 * (1 + (d.model == "b")) * d.noise
              + 2e4 * (d.model == "c"))
    cases.append(analyse("covariate with a slope per level", d.drop(columns="noise").iloc[3:]
                         .reset_index(drop=True), {"model": False, "load": True},
                         [("load", "model")]))

    d = grid(random, {"a": ["1", "2", "3"], "b": ["p", "q", "r"]}, 3)
    d["y"] = d.noise + (d.a == "2") * 2
    d = d[~((d.a == "3") & (d.b == "r")) & ~((d.a == "1") & (d.b == "q"))]
    d = d.drop(columns="noise").reset_index(drop=True)
    cases.append(analyse("empty cells", d, {"a": False, "b": False}, [("a", "b")], False))
    cases.append(analyse("empty cells, main effects only", d, {"a": False, "b": False}, []))

    d = grid(random, {"a": ["u", "v"]}, 4)
    d["y"] = np.round(d.noise * 2) + 7
    cases.append(analyse("eight runs with ties", d.drop(columns="noise"), {"a": False}, []))

    d = grid(random, {"a": [1, 2, 3, 4, 5]}, 3)
    d["y"] = 1e-3 + 1e-9 * (d.a ** 2 + 0.01 * d.noise)
    cases.append(analyse("tiny variance, large F", d.drop(columns="noise"), {"a": False}, []))

    d = grid(random, {"a": range(6), "b": range(5)}, 20)
    d["y"] = random.exponential(size=len(d)) * (1 + d.a)
    cases.append(analyse("many skewed runs", d.drop(columns="noise").iloc[:551],
                         {"a": False, "b": False}, [("a", "b")]))

    d = grid(random, {"a": ["x", "y"], "b": [1, 2, 3], "c": ["p", "q"]}, 4)
    d["y"] = np.round(np.exp(d.noise + (d.a == "y") * d.b / 2), 1)
    cases.append(analyse("balanced, three-way, ties", d.drop(columns="noise"),
                         {"a": False, "b": False, "c": False}, [("a", "b", "c")]))

    with open("statsmodels.json", "w", encoding="utf-8") as out:
        lines = ",\n".join(json.dumps(case, allow_nan=False) for case in cases)
        out.write(f'{{"statsmodels": "{statsmodels.__version__}", "cases": [\n{lines}\n]}}\n')


main()
