// Search needs a Worker, and browsers refuse Workers to pages opened from the disk. There, a hidden frame plays the part:
// the worker's script runs in it, and messages go back and forth as events. (The theme would fetch such a script from a
// network; its name tells the theme that this one is here.)
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const home = new URL(url, location.href);
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.body.append(this.frame);
      const inside = this.frame.contentWindow;
      const load = (source) =>
        new Promise((done, failed) => {
          const script = inside.document.createElement("script");
          script.src = new URL(source, home);
          script.onload = done;
          script.onerror = failed;
          inside.document.body.append(script);
        });
      inside.postMessage = (data) => {
        const event = new MessageEvent("message", { data });
        this.dispatchEvent(event);
        if (this.onmessage) this.onmessage(event);
      };
      inside.importScripts = (...sources) => sources.reduce((before, s) => before.then(() => load(s)), Promise.resolve());
      this.ready = load(home);
    }

    postMessage(data) {
      this.ready.then(() => {
        const inside = this.frame.contentWindow;
        inside.dispatchEvent(new inside.MessageEvent("message", { data }));
      });
    }

    terminate() {
      this.frame.remove();
    }
  };
}
