import type account from "../account/text.en.json"
import type agent from "../agent/text.en.json"
import type conversation from "../conversation/text.en.json"
import type file from "../file/text.en.json"
import type live from "../live/text.en.json"
import type run from "../run/text.en.json"
import type shell from "../shell/text.en.json"
import type space from "../space/text.en.json"
import type task from "../task/text.en.json"
import type ui from "../ui/text.en.json"

/** The texts that there are, by folder: t("task.title"). A folder that gets texts is added here. */
type Texts = {
  account: typeof account
  agent: typeof agent
  conversation: typeof conversation
  file: typeof file
  live: typeof live
  run: typeof run
  shell: typeof shell
  space: typeof space
  task: typeof task
  ui: typeof ui
}

declare module "i18next" {
  interface CustomTypeOptions {
    defaultNS: "t"
    resources: { t: Texts }
  }
}
