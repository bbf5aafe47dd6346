// 客户端的全部文本（简体中文）。各部分的文件名、键和顺序都与 en.js 一致：那边添加的键，这边也要添加。
//
// 术语（与 SillyTavern 的中文界面一致）：
// Space – 空间
// Conversation – 对话
// Chat – 聊天
// Branch – 分支
// Message – 消息
// Reply – 回复
// Swipe – 备选回复
// Regenerate – 重新生成
// Continue – 继续
// Run – 生成记录
// Round – 一轮
// Trigger – 触发
// Mute – 禁言
// Whisper – 悄悄话
// Group reply strategy – 群聊发言顺序
// Auto Mode – 自动模式
// Impersonate – AI 帮答
// Copilot – 托管
// Cast – 角色阵容
// Character – 角色
// Character card – 角色卡
// Personality summary – 角色设定摘要
// Scenario – 情景
// First message – 开场白
// Examples of dialogue – 对话示例
// Talkativeness – 发言频率
// Character's Note – 角色备注
// Creator's Notes – 创作者的注释
// Author's Note – 作者注释
// Persona – 用户设定
// World Info, Lorebook – 世界书
// Entry – 条目
// Keyword – 关键字
// Activated – 已激活
// Recursion – 递归
// Outlet – 锚点
// Budget – 预算
// Memory – 记忆
// Learn – 学习
// Recall – 召回
// Forget – 遗忘
// Embed – 嵌入
// Pin – 固定
// Summary – 总结
// Prompt – 提示词
// Main Prompt – 主要提示词
// Post-History Instructions – 历史后置指令
// Preset – 预设
// Role – 身份
// Position – 插入位置
// Depth – 深度
// Token – Token
// Context – 上下文
// Reasoning – 推理
// Model – 模型
// Provider – 模型服务
// Key – 密钥
// Library – 资源库
// Owner – 所有者
// Moderator – 协管员
// Member – 成员
// Guest – 访客
// Observer – 旁观者
// Admin – 管理员
// User – 用户
//
// 写法：称呼用“你”；全角标点，引号用“”；中文与西文、数字之间空一格。花括号两侧不写空格：填入的
// 名字若以西文或数字开头、结尾，显示时会自动空一格。
import admin from "./zh-CN/admin.js"
import cards from "./zh-CN/cards.js"
import chats from "./zh-CN/chats.js"
import commands from "./zh-CN/commands.js"
import copilot from "./zh-CN/copilot.js"
import docs from "./zh-CN/docs.js"
import entrance from "./zh-CN/sign_in.js"
import errors from "./zh-CN/errors.js"
import files from "./zh-CN/files.js"
import lore from "./zh-CN/lorebooks.js"
import memories from "./zh-CN/memories.js"
import models from "./zh-CN/models.js"
import panel from "./zh-CN/panel.js"
import personas from "./zh-CN/personas.js"
import prompts from "./zh-CN/prompts.js"
import presets from "./zh-CN/presets.js"
import regex from "./zh-CN/regex.js"
import settings from "./zh-CN/settings.js"
import spaces from "./zh-CN/spaces.js"
import summaries from "./zh-CN/summaries.js"
import talk from "./zh-CN/conversation.js"
import tools from "./zh-CN/tools.js"
import warnings from "./zh-CN/warnings.js"
import whispers from "./zh-CN/whispers.js"

export default {
  "app.name": "Troupe",
  "app.description": "供真人与 AI 角色对话的服务器。",
  add: "添加",
  cancel: "取消",
  close: "关闭",
  delete: "删除",
  discard: "放弃",
  discard_title: "放弃更改吗？",
  discard_text: "你的更改尚未保存。",
  loading: "加载中…",
  reload: "重新加载",
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
  ...commands,
  ...copilot,
  ...panel,
  ...prompts,
  ...files,
  ...lore,
  ...memories,
  ...summaries,
  ...cards,
  ...settings,
  ...personas,
  ...presets,
  ...regex,
  ...models,
  ...admin,
  ...errors,
  ...docs,
  ...tools,
  ...warnings,
  ...whispers,
}
