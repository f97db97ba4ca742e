// A panel whose picture Python computes: what is chosen is kept in this.view and asked for through the latch.
class LivePanel {
  constructor(root, send) {
    this.root = root;
    this.send = send;
    this.latch = new Latch((wish) => this.send("wish", wish));
  }

  // What is dragged goes through the latch; what is clicked, or let go, is kept in the link too.
  wish(change) {
    this.view = { ...this.view, ...change };
    this.latch.ask(this.view);
  }

  choose(change) {
    this.wish(change);
    this.commit();
  }

  commit() {
    this.wantsCommit = true;
    if (this.latch.waiting === null) this.latch.ask(this.view);
  }

  // Takes an answer in; true when nothing newer has been asked for, so that controls may show its view.
  take(bytes) {
    const { header, array } = readBlock(bytes);
    const settled = this.header === undefined || this.latch.answered(header.count);
    this.header = header;
    this.array = array;
    if (!settled) return false;
    this.view = { ...header.view };
    if (this.wantsCommit) {
      this.wantsCommit = false;
      this.send("commit", { ...this.view });
    }
    return true;
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
    root.panel.show(data);
    return () => root.panel.destroy();
  };
}
