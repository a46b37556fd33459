#!/usr/bin/env bash
# A boss that looks something up with a tool and answers, and a helper that comments: curl and jq.
# usage: agent.sh <question>; the environment says where the models are.
set -euo pipefail

ask() { # ask <agent> <messages as JSON>: the message that it answers with
  jq -nc --arg model "$1" --argjson messages "$2" '{$model, $messages, tools: (if $model == "boss" then [
    {type: "function", function: {name: "t", parameters: {type: "object", properties: {n: {type: "number"}}, required: ["n"]}}}
  ] else [] end)}' |
    curl -sS --fail-with-body "$OPENAI_BASE_URL/chat/completions" -H "Authorization: Bearer $OPENAI_API_KEY" -d @- |
    jq -c '.choices[0].message'
}

messages=$(jq -nc --arg question "$1" '[{role: "system", content: "boss"}, {role: "user", content: $question}]')
calls=0
while true; do
  message=$(ask boss "$messages")
  n=$(jq '.tool_calls // [] | length' <<< "$message")
  [ "$n" -eq 0 ] && break
  calls=$((calls + n))
  messages=$(jq -c --argjson message "$message" '. + [$message] + [$message.tool_calls[] | {
    role: "tool", tool_call_id: .id, content: (2 * (.function.arguments | fromjson | .n) | tostring)
  }]' <<< "$messages")
done
comment=$(ask helper "$(jq -c '[{role: "system", content: "helper"}, {role: "user", content: .content}]' <<< "$message")")
jq -nc --argjson message "$message" --argjson comment "$comment" --argjson calls "$calls" \
  '{answer: $message.content, comment: $comment.content, $calls}'
