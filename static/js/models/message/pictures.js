// The pictures of messages: the size in which the timeline shows them, and their texts.

// The longer side of a picture in the timeline, in pixels.
const SHOWN_SIDE = 320

// Returns the size in which a picture is shown; it is not enlarged.
export function shownSize({ width, height }) {
  const scale = Math.min(1, SHOWN_SIDE / Math.max(width, height, 1))
  return { width: Math.max(1, Math.round(width * scale)), height: Math.max(1, Math.round(height * scale)) }
}

// Returns what stands for a picture where it is not shown, as the server and prompts write it.
export function pictureText({ alt, file_name: name, width, height }) {
  const line = (text) => (text ?? "").trim().split(/\s+/).join(" ")
  if (line(alt) !== "") return `[Picture: ${line(alt)}]`
  return `[Picture: ${[line(name), `${width}×${height}`].filter(Boolean).join(", ")}]`
}

// Returns the text of a message, or of its pictures if it has none.
export function textOf({ content, attachments = [] }) {
  return content.trim() === "" ? attachments.map(pictureText).join("\n") : content
}
