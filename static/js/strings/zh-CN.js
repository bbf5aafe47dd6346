// 客户端的全部文字（简体中文）。各部分的文件名、键和顺序都与 en.js 一致：那边添了什么，这边也要添。
//
// 用词：Space 空间　Conversation 对话　Branch 分支　Message 消息　Character 角色　Cast 角色阵容
// Persona 人设　Card 角色卡　Greeting 开场白　Scenario 场景　Lorebook 世界书　Preset 预设
// Prompt 提示词　Token token（不译）　Swipe 备选回复（左右滑动切换）　Regenerate 重新生成
// Run 生成（一次生成的记录）　Round 一轮　Turn 轮到谁　Speak 发言　Let … speak 让……发言
// Mute 禁言　Talkativeness 健谈度　Narration 旁白　Copilot 托管　Provider 模型服务　Key 密钥
// Owner 所有者　Moderator 协管员　Member 成员　Guest 访客　Observer 旁观者　Admin 管理员
//
// 写法：称呼用“你”；全角标点，引号用“”；中文与西文、数字之间空一格。花括号两侧不写空格：填入的
// 名字若以西文或数字开头、结尾，显示时会自动空一格。
import admin from "./zh-CN/admin.js"
import cards from "./zh-CN/cards.js"
import chats from "./zh-CN/chats.js"
import copilot from "./zh-CN/copilot.js"
import docs from "./zh-CN/docs.js"
import entrance from "./zh-CN/sign_in.js"
import errors from "./zh-CN/errors.js"
import files from "./zh-CN/files.js"
import lore from "./zh-CN/lorebooks.js"
import models from "./zh-CN/models.js"
import panel from "./zh-CN/panel.js"
import prompts from "./zh-CN/prompts.js"
import presets from "./zh-CN/presets.js"
import settings from "./zh-CN/settings.js"
import spaces from "./zh-CN/spaces.js"
import talk from "./zh-CN/conversation.js"
import tools from "./zh-CN/tools.js"
import warnings from "./zh-CN/warnings.js"

export default {
  "app.name": "Troupe",
  "app.description": "真人与 AI 角色同处一室的对话服务器。",
  add: "添加",
  cancel: "取消",
  close: "关闭",
  delete: "删除",
  discard: "放弃",
  discard_title: "放弃已写的内容吗？",
  discard_text: "这里还有未保存的内容。",
  loading: "加载中…",
  retry: "重试",
  save: "保存",
  saved: "已保存。",
  skip: "跳过",
  undo: "撤销",
  sign_out: "退出登录",
  "field.needed": "请填写此项。",
  "day.today": "今天",
  "day.yesterday": "昨天",

  ...entrance,
  ...spaces,
  ...talk,
  ...chats,
  ...copilot,
  ...panel,
  ...prompts,
  ...files,
  ...lore,
  ...cards,
  ...settings,
  ...presets,
  ...models,
  ...admin,
  ...errors,
  ...docs,
  ...tools,
  ...warnings,
}
