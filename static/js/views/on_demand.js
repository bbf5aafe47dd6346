// Dialogs and pages that the first screen does not show. The module of each is loaded when it is first
// opened; if that fails, a notice offers to reload the page.
import { t } from "../base/i18n.js"

// Resolves with the module, or null if it cannot be loaded: the connection is lost, or the server was
// updated and has no file of this name any more. `load` imports it.
export async function importModule(load) {
  try {
    return await load()
  } catch (error) {
    console.error("failed to load a module", error)
    return null
  }
}

// Like `importModule`; a notice explains a failure.
export async function loadModule({ toasts }, load) {
  const module = await importModule(load)
  if (module) return module
  const action = { label: t("reload"), run: () => location.reload() }
  toasts.show(t("error.load"), { action })
  return null
}

// Returns the function `name` of the module. All of them take `parts` first.
function onDemand(load, name) {
  return async (parts, ...rest) => {
    const module = await loadModule(parts, load)
    return module?.[name](parts, ...rest)
  }
}

const providers = () => import("./providers/provider_dialog.js")
const prompts = () => import("./prompt/prompt_dialog.js")

export const openCharacterDialog = onDemand(() => import("./characters/character_dialog.js"), "openCharacterDialog")
export const openSearch = onDemand(() => import("./conversation/search_dialog.js"), "openSearch")
export const openSpaceImportDialog = onDemand(() => import("./files/import_dialog.js"), "openSpaceImportDialog")
export const openChatImportDialog = onDemand(() => import("./files/import_dialog.js"), "openChatImportDialog")
export const importers = onDemand(() => import("./files/importers.js"), "importers")
export const openInvitationDialog = onDemand(() => import("./members/invitation_dialog.js"), "openInvitationDialog")
export const openInviteDialog = onDemand(() => import("./members/invite_dialog.js"), "openInviteDialog")
export const showPromptOfMessage = onDemand(prompts, "showPromptOfMessage")
export const connectModel = onDemand(providers, "connectModel")
export const changeModel = onDemand(providers, "changeModel")
export const openRoundDialog = onDemand(() => import("./queue/round_dialog.js"), "openRoundDialog")
