// For whom the page is: searchers, or researchers, who also see pipelines, scores, conditions and the types of columns.

/** Shows the page for those for whom it was last, and for others when they are chosen. */
export function listen() {
  const choices = [...document.querySelectorAll("#audience input")];
  const set = audience => {
    document.documentElement.dataset.audience = audience;
    for (const choice of choices) choice.checked = choice.value === audience;
  };
  let stored = "";
  try { stored = localStorage.audience; } catch { /* there is no storage */ }
  set(stored === "researchers" ? stored : "searchers");
  for (const choice of choices) choice.addEventListener("change", () => {
    try { localStorage.audience = choice.value; } catch { /* it holds for this page */ }
    set(choice.value);
  });
}
