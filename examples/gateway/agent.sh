#!/usr/bin/env bash
# A shop of two agents, as any program calls models: curl and jq. A buyer looks up a price with a tool, a cashier who
# sees the count and that price writes the sum. usage: agent.sh <order>, such as '3 fig'; prints {"sum": "3*5"}
set -euo pipefail
prices='{"bean": 4, "date": 3, "fig": 5, "kiwi": 7, "lime": 2, "nut": 9, "pear": 6, "plum": 8}'

post() { # post <request>: the completion
  curl -sS --fail-with-body "$OPENAI_BASE_URL/chat/completions" -H "Authorization: Bearer $OPENAI_API_KEY" -d "$1"
}

request=$(jq -nc --arg order "$1" '{
  model: "buyer",
  messages: [{role: "system", content: "Say its price."}, {role: "user", content: $order}],
  tools: [{type: "function", function: {
    name: "price",
    description: "price of one",
    parameters: {type: "object", properties: {fruit: {type: "string"}}, required: ["fruit"]}
  }}]
}')
for _ in 1 2 3 4; do # the rounds that a buyer may take
  request=$(post "$request" | jq -c --argjson asked "$request" --argjson prices "$prices" --arg order "$1" '
    .choices[0].message as $message
    | if $message.tool_calls then
        $asked | .messages += [$message] + [$message.tool_calls[] | {
          role: "tool", tool_call_id: .id, content: ($prices[.function.arguments | fromjson | .fruit] // "not for sale" | tostring)
        }]
      else
        {model: "cashier", messages: [
          {role: "system", content: "Write count*price."}, {role: "user", content: (($order | split(" ")[0]) + " " + $message.content)}
        ]}
      end')
  [[ $request == '{"model":"cashier"'* ]] && break
done
post "$request" | jq -c '{sum: .choices[0].message.content}'
