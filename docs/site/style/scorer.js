// How the search orders pages: guides first, then the reference, and what few readers look for at the end. The other numbers are Sphinx's own.
var Scorer = {
  score: ([page, title, anchor, text, score]) => {
    const last = ["papers/", "design/", "corpus", "statements", "conformance", "python-coverage"];
    const first = ["install", "start", "python", "guide", "gpu", "cluster", "measure", "faq", "troubleshooting", "coming-from", "environment", "glossary"];
    if (last.some((begin) => page.startsWith(begin))) return score - 20;
    return first.includes(page) ? score + 10 : score;
  },
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
