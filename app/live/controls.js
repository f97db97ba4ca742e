// Controls that live panels share. Each has a name that people and assistive technology find it by.

// A range with its name and its value; "input" while it moves, "change" when it is let go.
function rangeInput(parent, name, { min, max, step }, { input, change }) {
  const row = make("label", "slider", parent);
  make("span", "", row, name);
  const thumb = make("input", "", row);
  Object.assign(thumb, { type: "range", min, max, step });
  thumb.setAttribute("aria-label", name);
  const value = make("output", "", row);
  thumb.addEventListener("input", () => input(Number(thumb.value)));
  thumb.addEventListener("change", change);
  return { row, input: thumb, value, show: (number, text = number) => {
    thumb.value = number;
    value.textContent = text;
  } };
}

function checkBox(parent, text, act) {
  const row = make("label", "check", parent);
  const input = make("input", "", row);
  input.type = "checkbox";
  make("span", "", row, text);
  input.addEventListener("change", () => act(input.checked));
  return input;
}

// One of a few, as buttons side by side: names is {key: text}. Returns show(key), which presses one.
function choiceOf(parent, name, names, pick) {
  const group = make("div", "choice", parent);
  group.setAttribute("role", "group");
  group.setAttribute("aria-label", name);
  const buttons = Object.entries(names).map(([key, text]) => {
    const button = make("button", "", group, text);
    button.type = "button";
    button.addEventListener("click", () => pick(key));
    return [key, button];
  });
  return (chosen) => buttons.forEach(([key, button]) => button.setAttribute("aria-pressed", key === String(chosen)));
}

function weightLegend(parent) {
  const legend = make("div", "legend", parent);
  make("span", "", legend, "weight 0");
  make("span", "scale", legend);
  make("span", "", legend, "1");
  make("span", "masked", legend);
  make("span", "", legend, "masked");
  return legend;
}
