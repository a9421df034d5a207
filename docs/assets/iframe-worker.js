// Browsers start no worker for a page that is read from a disk, and the search is one: there it runs in a hidden frame.
// The theme would load a file of this name from a network; ours takes its place.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super()
      this.started = new Promise((resolve) => {
        const frame = document.createElement("iframe")
        frame.hidden = true
        frame.srcdoc = "<!doctype html>"
        frame.onload = () => {
          const within = frame.contentWindow
          within.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }))
          const script = within.document.createElement("script")
          script.src = url
          script.onload = () => resolve(within)
          within.document.head.append(script)
        }
        document.body.append(frame)
      })
    }

    async postMessage(data) {
      const within = await this.started
      within.dispatchEvent(new within.MessageEvent("message", { data }))
    }
  }
}
