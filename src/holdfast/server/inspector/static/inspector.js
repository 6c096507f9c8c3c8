// Every page works without this: it only asks the server sooner, and puts the answer in place.
"use strict";

async function fetchPart(address, selector, signal) {
  const answer = await fetch(address, { signal, credentials: "same-origin" });
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  return page.querySelector(selector) || page.querySelector("main");
}

// A form with a slider: the answer follows the slider, beside what there was when it began to move.
for (const form of document.querySelectorAll("form[data-live]")) {
  const slider = form.querySelector("[data-slider]");
  const output = form.querySelector("output");
  const before = form.querySelector("[data-before]");
  const place = form.dataset.live;
  let waiting = 0;
  let asking = null;
  let moving = false;

  async function follow() {
    asking?.abort();
    asking = new AbortController();
    const address = `${form.getAttribute("action")}?${new URLSearchParams(new FormData(form))}`;
    try {
      const part = await fetchPart(address, place, asking.signal);
      document.querySelector(place).replaceChildren(...part.childNodes);
      history.replaceState(null, "", address);
    } catch (error) {
      if (error.name !== "AbortError") form.submit();
    }
  }

  slider.addEventListener("input", () => {
    if (!moving) moving = true;
    output.textContent = `${Number(slider.value).toLocaleString("en")} tokens`;
    if (!form.elements.q.value.trim()) return;
    clearTimeout(waiting);
    waiting = setTimeout(follow, 80);
  });
  // The next move is compared with where this one ended.
  for (const begin of ["pointerdown", "focus"]) {
    slider.addEventListener(begin, () => { before.value = slider.value; });
  }
}

// A link that opens below itself instead of leading away.
document.addEventListener("click", async (event) => {
  const link = event.target.closest("a[data-expand]");
  if (!link || event.metaKey || event.ctrlKey || event.shiftKey) return;
  event.preventDefault();
  const holder = link.parentElement;
  const open = holder.parentElement.querySelector(":scope > .expanded");
  if (open) {
    open.remove();
    link.textContent = link.dataset.closed;
  } else {
    link.dataset.closed = link.textContent;
    const part = await fetchPart(link.href, link.dataset.expand);
    part.removeAttribute("id");
    holder.after(part);
    link.textContent = "Close its turns";
  }
  link.setAttribute("aria-expanded", String(!open));
});

// A slash goes to the question, as in many programs.
document.addEventListener("keydown", (event) => {
  if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey) return;
  if (/^(INPUT|TEXTAREA|SELECT)$/.test(document.activeElement?.tagName ?? "")) return;
  const field = document.querySelector("[data-focus]");
  if (!field) return;
  event.preventDefault();
  field.focus();
  field.select();
});
