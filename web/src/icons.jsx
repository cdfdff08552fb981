// Pictures of buttons: drawn here, since fonts differ in what they have. Their words are the button's label.

const paths = {
  menu: "M4 6h16M4 12h16M4 18h16",
  search: "M10.5 17a6.5 6.5 0 1 0 0-13 6.5 6.5 0 0 0 0 13zM15.5 15.5L21 21",
  more: "M5 12h.01M12 12h.01M19 12h.01",
  close: "M6 6l12 12M18 6L6 18",
  attach: "M12 5v14M5 12h14",
  down: "M12 5v14M6 13l6 6 6-6",
  file: "M6 3h8l4 4v14H6zM14 3v4h4M9 12h6M9 16h6",
  branch: "M6 3v18M6 14c0-6 12-2 12-9M18 3v3",
  main: "M4 11l8-7 8 7M6 10v10h12V10",
  light: "M12 16a4 4 0 1 0 0-8 4 4 0 0 0 0 8zM12 2v2M12 20v2M2 12h2M20 12h2M5 5l1.4 1.4M17.6 17.6L19 19M19 5l-1.4 1.4M6.4 17.6L5 19",
  dark: "M20 14A8.5 8.5 0 0 1 10 4a8.5 8.5 0 1 0 10 10z",
  system: "M12 21a9 9 0 1 0 0-18 9 9 0 0 0 0 18zM12 3v18",
};

// Icon draws one; a small one stands within a line of text.
export function Icon({ name, small = false }) {
  const size = small ? 14 : 20;
  return (
    <svg class={small ? "small" : undefined} viewBox="0 0 24 24" width={size} height={size} aria-hidden="true" fill="none" stroke="currentColor" stroke-width={name === "more" ? 3 : 2} stroke-linecap="round" stroke-linejoin="round">
      <path d={paths[name]} />
    </svg>
  );
}
