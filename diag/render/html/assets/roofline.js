// Marks of a roofline tell what they are, and which others are of the same kernel.

for (const picture of document.querySelectorAll("svg.roofline")) {
  const marks = [...picture.querySelectorAll(".mark")];
  for (const mark of marks) {
    const title = mark.querySelector("title");
    const said = title.textContent;
    title.remove(); // the browser would show it a second time
    mark.setAttribute("tabindex", "0");
    mark.setAttribute("role", "img");
    mark.setAttribute("aria-label", said);
    const kernel = said.slice(0, said.lastIndexOf(": "));
    mark.dataset.kernel = kernel;
    const show = () => {
      picture.classList.add("has-focus");
      for (const other of marks) other.classList.toggle("same", other.dataset.kernel === kernel);
      const box = mark.getBoundingClientRect();
      tip.show(said, box.right, box.top);
    };
    const hide = () => {
      picture.classList.remove("has-focus");
      tip.hide();
    };
    mark.addEventListener("pointerenter", show);
    mark.addEventListener("pointerleave", hide);
    mark.addEventListener("focus", show);
    mark.addEventListener("blur", hide);
  }
}
