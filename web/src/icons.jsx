// Pictures of buttons: drawn here, since fonts differ in what they have. Their words are the button's label.

const paths = {
  menu: "M4 6h16M4 12h16M4 18h16",
  search: "M10.5 17a6.5 6.5 0 1 0 0-13 6.5 6.5 0 0 0 0 13zM15.5 15.5L21 21",
  more: "M5 12h.01M12 12h.01M19 12h.01",
  close: "M6 6l12 12M18 6L6 18",
  attach: "M12 5v14M5 12h14",
  down: "M12 5v14M6 13l6 6 6-6",
};

export function Icon({ name }) {
  return (
    <svg viewBox="0 0 24 24" width="20" height="20" aria-hidden="true" fill="none" stroke="currentColor" stroke-width={name === "more" ? 3 : 2} stroke-linecap="round" stroke-linejoin="round">
      <path d={paths[name]} />
    </svg>
  );
}
