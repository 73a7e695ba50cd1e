// takeback: keeps what it takes to undo what opencode's tools change. Made by `takeback connect opencode`.
import { spawn } from "node:child_process"

const gate = GATE_COMMAND

// Resolves in any case: whatever goes wrong with the gate is no matter to the tool.
const tell = (event) =>
  new Promise((done) => {
    try {
      const child = spawn(gate[0], gate.slice(1), { stdio: ["pipe", "ignore", "ignore"] })
      child.on("error", done)
      child.on("exit", done)
      child.stdin.on("error", done)
      child.stdin.end(JSON.stringify(event))
    } catch {
      done()
    }
  })

export const Takeback = async ({ directory }) => ({
  event: async ({ event }) => {
    if (!["session.created", "session.idle", "session.error", "session.deleted"].includes(event?.type)) return
    const given = event.properties ?? {}
    await tell({ event: event.type, sessionID: given.sessionID ?? given.info?.id, cwd: directory })
  },
  "chat.message": async (input, output) =>
    tell({
      event: "chat.message",
      sessionID: input.sessionID,
      messageID: input.messageID ?? output?.message?.id,
      prompt: (output?.parts ?? []).filter((part) => part?.type === "text").map((part) => part.text).join("\n"),
      cwd: directory,
    }),
  "tool.execute.before": async (input, output) =>
    tell({
      event: "tool.execute.before",
      sessionID: input.sessionID,
      callID: input.callID,
      tool: input.tool,
      args: output?.args,
      cwd: directory,
    }),
  "tool.execute.after": async (input) =>
    tell({
      event: "tool.execute.after",
      sessionID: input.sessionID,
      callID: input.callID,
      tool: input.tool,
      args: input.args,
      cwd: directory,
    }),
})
