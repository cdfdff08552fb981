// gist is what a fake summariser says of the conversation in a message: the beginnings of its first lines. A summary
// that names nothing of what it stands for is none.
export function gist({ content }) {
  const prompt = typeof content === "string" ? content : content.map((b) => b.text ?? "").join("");
  const [, talk = ""] = prompt.match(/<conversation>\n(.*?)<\/conversation>/s) ?? [];
  return talk.split("\n").filter((line) => line.trim()).slice(0, 12).map((line) => `- ${line.trim().slice(0, 80)}\n`).join("");
}
