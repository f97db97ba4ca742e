// A panel whose picture Python computes: what is chosen is kept in this.view and asked for through the latch.
// A subclass has draw(), and show(settled), which also shows this.view in the controls if settled.
class LivePanel {
  constructor(root, send) {
    this.root = root;
    this.send = send;
    this.latch = new Latch((wish) => this.ask(wish));
  }

  async ask(wish) {
    const { at, ...question } = this.header.ask;
    try {
      const answer = await fetch(`${at}?q=${encodeURIComponent(JSON.stringify({ ...question, wish }))}`);
      if (!answer.ok) return this.tellOfFailure(await answer.text());
      this.take(new Uint8Array(await answer.arrayBuffer()));
      this.failure?.remove();
    } catch (error) {
      if (!(error instanceof TypeError)) throw error; // what fetch throws when nobody answers
      this.tellOfFailure("the app does not answer");
    }
  }

  tellOfFailure(why) {
    this.failure ??= make("p", "failure", this.root);
    this.root.prepend(this.failure);
    this.failure.setAttribute("role", "alert");
    this.failure.textContent = `Not up to date: ${why}. Move the control again, or reload the page.`;
  }

  // What is dragged goes through the latch; what is clicked, or let go, is also sent to the page, which keeps it in the link.
  wish(change) {
    this.moving = true;
    this.view = { ...this.view, ...change };
    this.latch.ask(this.view);
  }

  choose(change) {
    this.wish(change);
    this.commit();
  }

  commit() {
    this.moving = false;
    this.wantsCommit = true;
    if (this.latch.waiting === null) this.latch.ask(this.view);
  }

  // A block from a run of the page. What was answered since then stands, unless the page is about another source now.
  given(bytes) {
    const { header } = readBlock(bytes);
    const before = this.header && JSON.stringify(this.header.ask);
    if (before === JSON.stringify(header.ask) && header.count !== this.latch.count) return this.draw();
    this.take(bytes);
  }

  // When nothing newer has been asked for, the answer's view is the panel's own.
  take(bytes) {
    const { header, array } = readBlock(bytes);
    const settled = this.header === undefined || this.latch.answered(header.count);
    this.header = header;
    this.array = array;
    if (settled) this.view = { ...header.view };
    this.show(settled);
    if (settled && this.wantsCommit) {
      this.wantsCommit = false;
      this.send("commit", { ...this.view, count: this.latch.count });
    }
  }
}

// The component's module runs again with each answer: the panel is made once and stays on its element.
function mounted(className, Panel) {
  return ({ parentElement, data, setStateValue }) => {
    let root = parentElement.querySelector(`.${className}`);
    if (!root) {
      root = make("div", `tw ${className}`, parentElement);
      root.panel = new Panel(root, setStateValue);
    }
    root.panel.send = setStateValue;
    root.panel.given(data);
    return () => root.panel.destroy();
  };
}
