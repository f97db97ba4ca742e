// The Break it page: pick a part, predict, and see what became of two twins; or train them here and now.
const TWIN_NAMES = { intact: "intact", broken: "broken" };
const TWIN_COLOURS = { intact: "blue", broken: "orange" };
const ASK_EVERY_MS = 400;

class BrokenPanel {
  constructor(root, send) {
    this.root = root;
    this.send = send;
    this.guessed = {}; // by part: what was predicted, in this visit
    this.build();
    this.live = new LiveRun(this);
    this.resized = onNewWidth(this.curves.box, () => this.view && this.draw());
  }

  build() {
    this.list = make("nav", "list", this.root);
    this.list.setAttribute("aria-label", "Parts");
    const main = make("div", "main", this.root);
    this.done = make("p", "done", main);
    this.question = make("p", "question", main);
    this.answers = make("div", "answers", main);
    this.answers.setAttribute("role", "group");
    this.answers.setAttribute("aria-label", "Your prediction");
    this.verdict = make("p", "verdict", main);
    this.verdict.setAttribute("role", "status");
    const pictures = make("div", "pictures", main);
    this.curves = new Chart(make("div", "", pictures), "Training loss", 250, "Each point is a mean over steps. Faint: the other seeds.", { legend: true });
    const numbers = make("div", "numbers", pictures);
    const head = make("div", "numbers-head", numbers);
    make("h3", "", head, "Exact match");
    saveTableMenu(head, "Twins", () => this.lines());
    this.bars = make("div", "bars", numbers);
    this.losses = make("p", "note", numbers);
    this.example = make("div", "example", numbers);
    this.why = make("p", "why", main);
    this.runRow = make("div", "live", main);
    this.command = make("code", "command", main);
  }

  given(bytes) {
    const { header } = readBlock(bytes);
    this.header = header;
    if (!this.view) {
      this.view = header.view;
      this.lay();
      this.live.resume();
    }
    this.draw();
  }

  get part() {
    return this.header.parts.find((part) => part.name === this.view.part) ?? this.header.parts[0];
  }

  choose(change) {
    this.view = { ...this.view, ...change };
    if (this.view.guess) this.guessed[this.part.name] = this.view.guess;
    this.draw();
    this.send("commit", { ...this.view });
  }

  lay() {
    this.buttons = this.header.parts.map((part) => {
      const button = make("button", "", this.list, part.title);
      button.type = "button";
      const mark = make("span", "mark", button);
      button.addEventListener("click", () => this.choose({ part: part.name, guess: this.guessed[part.name] ?? null }));
      return { part, button, mark };
    });
    this.score = make("p", "score quiet", this.list);
    if (this.view.guess) this.guessed[this.part.name] = this.view.guess;
  }

  draw() {
    const { part, view: { guess } } = this, seen = guess !== null;
    this.root.classList.toggle("seen", seen);
    this.drawList();
    this.done.textContent = `Broken twin: ${part.done}.`;
    this.question.textContent = part.question;
    this.drawAnswers(part, guess);
    this.drawCurves(part, seen);
    this.drawNumbers(part, seen);
    this.why.textContent = seen ? part.why : "";
    this.command.textContent = part.command;
    this.live.draw(part);
  }

  drawList() {
    const asked = this.header.parts.filter((part) => typeof this.guessed[part.name] === "number");
    for (const { part, button, mark } of this.buttons) {
      button.setAttribute("aria-current", part === this.part);
      const guess = this.guessed[part.name];
      mark.textContent = guess === undefined || guess === "shown" ? "" : guess === part.truth ? "✓" : "✗";
      mark.setAttribute("aria-label", { "✓": "predicted rightly", "✗": "predicted otherwise" }[mark.textContent] ?? "");
    }
    const right = asked.filter((part) => this.guessed[part.name] === part.truth).length;
    this.score.textContent = asked.length ? `${right} of ${asked.length} predicted` : "";
  }

  drawAnswers(part, guess) {
    this.answers.replaceChildren();
    part.answers.forEach((text, i) => {
      const button = make("button", "", this.answers, text);
      button.type = "button";
      button.disabled = guess !== null;
      button.setAttribute("aria-pressed", guess === i + 1);
      button.classList.toggle("true", guess !== null && part.truth === i + 1);
      button.addEventListener("click", () => this.choose({ guess: i + 1 }));
    });
    if (guess === null) {
      const show = make("button", "show", this.answers, "Just show me");
      show.type = "button";
      show.addEventListener("click", () => this.choose({ guess: "shown" }));
    }
    const { intact, broken } = part.means, of = this.header.fresh.toLocaleString("en");
    const numbers = `${Math.round(broken.exact).toLocaleString("en")} right against ${Math.round(intact.exact).toLocaleString("en")} of ${of}`;
    const word = guess === null ? "" : guess === "shown" ? "Measured:" : guess === part.truth ? "✓ As you predicted:" : "✗ It went otherwise:";
    this.verdict.textContent = guess === null ? word : `${word} “${part.answers[part.truth - 1]}” ${numbers}${part.runs.length > 1 ? `, means of ${part.runs.length} seeds` : ""}.`;
  }

  // Shipped curves: the first seed strong, the others faint; all faint beside a live run.
  drawCurves(part, seen) {
    const live = this.live.of(part.name), series = [];
    const named = part.one_training ? "both twins: one training" : "";
    for (const twin of (seen || live) && !part.one_training ? ["intact", "broken"] : ["intact"]) {
      const colour = TWIN_COLOURS[twin];
      if (seen) part.runs.forEach((run, i) => {
        const strong = i === 0 && !live;
        series.push({ name: strong ? named || `${TWIN_NAMES[twin]} twin` : "", full: `${twin}, seed ${run.seed}`, colour, faint: !strong, points: run[twin].curve });
      });
      else if (!live) series.push({ name: "intact twin", full: "intact", colour, points: part.runs[0][twin].curve });
      if (live) series.push({ name: `${named || `${TWIN_NAMES[twin]} twin`}, live`, full: `${twin}, live, seed ${live.seed}`, colour, points: live.curves[twin] });
    }
    const last = part.runs[0].intact.curve.at(-1)[0];
    const ends = series.filter((one) => one.name && one.points.length).map((one) => `${one.name} ends at ${short(one.points.at(-1)[1])}`);
    const chart = { x: { name: "step", min: 0, max: last }, y: { name: "loss", ...decadesOf(series) }, series };
    this.curves.show(chart, series.at(-1).points.at(-1)?.[1] ?? "", `Training loss in nats a token, logarithmic, over ${last} steps: ${ends.join("; ")}.`);
  }

  drawNumbers(part, seen) {
    const { fresh } = this.header, live = this.live.of(part.name)?.measured, show = seen || live;
    this.bars.replaceChildren();
    const apart = ["intact", "broken"].some((twin) => Math.abs(part.means[twin].alone - part.means[twin].exact) > fresh / 50);
    for (const what of apart ? ["exact", "alone"] : ["exact"]) {
      if (apart) make("p", "bar-head quiet", this.bars, what === "exact" ? "in a batch padded to 8" : "each without padding");
      for (const twin of ["intact", "broken"]) {
        const hidden = twin === "broken" && !show, value = live ? live[twin][what] : part.means[twin][what];
        bar(this.bars, twin, hidden ? null : value, hidden || live ? [] : part.runs.map((run) => run[twin][what]), fresh);
      }
    }
    if (part.empty) make("p", "note quiet", this.bars, `${Math.round(part.empty)} of the ${fresh.toLocaleString("en")} are empty: who ends at once gets these right.`);
    const { intact, broken } = live ?? part.means;
    this.losses.textContent = show
      ? `Loss of fresh sequences with the right answer before it: ${short(broken.loss)} against ${short(intact.loss)}${broken.loss < intact.loss / 2 && broken.exact < intact.exact / 2 ? ". The lower loss belongs to the worse model." : "."}`
      : `Loss of the intact twin on fresh sequences: ${short(intact.loss)}.`;
    const end = (twin) => (live ? this.live.of(part.name).curves[twin] : part.runs[0][twin].curve).at(-1)[1];
    if (show && !part.one_training) this.losses.textContent += ` At the end of training: ${short(end("broken"))} against ${short(end("intact"))}.`;
    this.drawExample(live ? this.live.of(part.name).measured : part.runs[0], show);
  }

  drawExample(run, show) {
    this.example.replaceChildren();
    make("h3", "", this.example, show ? (run.first_error ? "The broken twin's first error" : "One example, right in both") : "One example");
    const row = (name, className, ids, target) => {
      const [tokens, right] = [ids, target].map((some) => some?.map((id) => this.header.labels[id]));
      make("span", `name ${className}`, this.example, name);
      const box = make("div", "tokens", this.example);
      const length = right ? Math.max(tokens.length, right.length) : tokens.length;
      for (let i = 0; i < length; i++) {
        const wrong = right && tokens[i] !== right[i], token = make("span", `token ${className} ${wrong ? "wrong" : ""}`, box, tokens[i] ?? "–");
        if (wrong) token.setAttribute("aria-label", `${tokens[i] ?? "nothing"}, wrong: ${right[i] ?? "nothing"} is right`);
      }
      if (!length) make("span", "quiet", box, "nothing");
    };
    row("source", "source", run.source);
    row("right", "target", run.target);
    row("intact", "intact", run.intact.answer, run.target);
    if (show) row("broken", "broken", run.broken.answer, run.target);
  }

  lines() {
    const { part } = this, runs = part.runs.map((run) => ({ ...run, how: "shipped" })), live = this.live.of(part.name);
    if (live?.measured) runs.push({ ...live.measured, seed: live.seed, how: "live" });
    return [
      ["part", "twin", "seed", "run", "loss", "exact", "exact without padding", "of", "parameters"],
      ...runs.flatMap((run) => ["intact", "broken"].map((twin) => [part.name, twin, run.seed, run.how, run[twin].loss, run[twin].exact, run[twin].alone, this.header.fresh, run[twin].parameters])),
    ];
  }

  destroy() {
    this.live.leave();
    this.resized.disconnect();
  }
}

function bar(parent, twin, value, each, of) {
  const row = make("div", `bar ${twin}`, parent), said = value === null ? "?" : Math.round(value).toLocaleString("en");
  make("span", "name", row, TWIN_NAMES[twin]);
  const track = make("span", "track", row);
  track.setAttribute("role", "img");
  track.setAttribute("aria-label", `${twin} twin: ${value === null ? "not revealed yet" : `${said} of ${of.toLocaleString("en")} right`}`);
  make("span", "fill", track).style.width = `${(100 * (value ?? 0)) / of}%`;
  for (const one of each) make("span", "tick", track).style.left = `${(100 * one) / of}%`;
  make("output", "", row, said);
}
