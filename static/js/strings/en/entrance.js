// Coming in: set-up, signing in, the password.
export default {
  "setup.title": "Welcome to Troupe",
  "setup.lead":
    "Make your account. You will be the admin of this server, and two characters are already waiting.",
  "setup.name": "Your name",
  "setup.username": "User name",
  "setup.username_hint": "For signing in. Letters, digits, dots, dashes.",
  "setup.submit": "Open the doors",
  "sign_in.title": "Welcome back",
  "sign_in.lead": "Sign in to go on with your conversations.",
  "sign_in.submit": "Sign in",
  "session_ended.title": "Please sign in again",
  "session_ended.lead": "Your session has ended. What you were writing is still here.",
  password: "Password",
  "password.hint": "At least 8 characters.",
  "password.current": "Current password",
  "password.new": "New password",
  "password.change": "Change password",
  "password.changed": "Password changed.",
}
