#!/usr/bin/env bash
# A solver and a verifier as any program calls models: curl and jq. usage: agent.sh <question>
set -euo pipefail

ask() { # ask <agent> <messages as JSON>: the text that it answers with
  jq -nc --arg model "$1" --argjson messages "$2" '{$model, $messages}' |
    curl -sS --fail-with-body "$OPENAI_BASE_URL/chat/completions" -H "Authorization: Bearer $OPENAI_API_KEY" -d @- |
    jq '.choices[0].message.content'
}

question=$(jq -nc --arg text "$1" '{role: "user", content: $text}')
solution=$(ask solver "[$question]")
verdict=$(ask verifier "[$question, {\"role\": \"assistant\", \"content\": $solution}]")
echo "{\"solution\": $solution, \"verdict\": $verdict}"
