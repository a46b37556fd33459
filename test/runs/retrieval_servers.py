"""A FastAPI server that validates requests as a retrieval server does: `python retrieval_servers.py search-r1 8000`.

`search-r1` has the fields of Search-R1's server, `paper` those of examples/search/retriever in the Dr. MAS paper's code,
`other` those of neither.
"""

import sys
from typing import List, Optional

import uvicorn
from fastapi import FastAPI
from pydantic import BaseModel


class SearchR1Request(BaseModel):
    queries: List[str]
    topk: Optional[int] = None
    return_scores: bool = False


class PaperRequest(BaseModel):
    query: str
    topk: Optional[int] = None
    return_scores: bool = False


class OtherRequest(BaseModel):
    text: str


schema = sys.argv[1]
Request = {"search-r1": SearchR1Request, "paper": PaperRequest, "other": OtherRequest}[schema]
app = FastAPI()


@app.post("/retrieve")
def retrieve(request: Request):
    queries = [request.query] if schema == "paper" else request.queries
    documents = [
        [{"id": str(n), "contents": f'"{query}"\ntext {n} of {schema}'} for n in range(request.topk or 3)]
        for query in queries
    ]
    if not request.return_scores:
        return {"result": documents}
    return {"result": [[{"document": each, "score": 1.0} for each in found] for found in documents]}


uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[2]), log_level="warning")
