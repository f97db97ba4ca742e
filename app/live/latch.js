// One request in flight: while it is, only the newest wish is kept, and it is sent when the answer has been drawn.
class Latch {
  constructor(send) {
    this.send = send;
    this.count = 0;
    this.waiting = null;
    this.next = null;
  }

  ask(wish) {
    this.next = wish;
    if (this.waiting === null) this.flush();
  }

  flush() {
    const wish = this.next;
    this.next = null;
    this.count += 1;
    this.waiting = setTimeout(() => this.answered(this.count), 1000); // a lost answer must not stop the drag
    this.send({ ...wish, count: this.count });
  }

  // Returns whether this is the answer to the last thing asked.
  answered(count) {
    if (count !== this.count) return false;
    clearTimeout(this.waiting);
    this.waiting = null;
    if (this.next === null) return true;
    this.flush();
    return false;
  }
}
