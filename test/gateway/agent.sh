#!/usr/bin/env bash
# A boss that looks something up with a tool and answers, and a helper that comments: curl and jq, one of each for a
# call, since starting processes is most of an episode's time.
# usage: agent.sh <question>; the environment says where the models are.
set -euo pipefail

post() { # post <request>: the completion
  curl -sS --fail-with-body "$OPENAI_BASE_URL/chat/completions" -H "Authorization: Bearer $OPENAI_API_KEY" -d "$1"
}

request=$(jq -nc --arg question "$1" '{
  model: "boss",
  messages: [{role: "system", content: "boss"}, {role: "user", content: $question}],
  tools: [{type: "function", function: {
    name: "t", parameters: {type: "object", properties: {n: {type: "number"}}, required: ["n"]}
  }}]
}')
while [[ $request == '{"model":"boss"'* ]]; do
  asked=$request
  request=$(post "$asked" | jq -c --argjson asked "$asked" '.choices[0].message as $message
    | if $message.tool_calls then
        $asked | .messages += [$message] + [$message.tool_calls[] | {
          role: "tool", tool_call_id: .id, content: (2 * (.function.arguments | fromjson | .n) | tostring)
        }]
      else
        {model: "helper", messages: [{role: "system", content: "helper"}, {role: "user", content: $message.content}]}
      end')
done
post "$request" | jq -c --argjson boss "$asked" --argjson helper "$request" '{
  answer: $helper.messages[1].content,
  comment: .choices[0].message.content,
  calls: [$boss.messages[] | select(.role == "tool")] | length
}'
