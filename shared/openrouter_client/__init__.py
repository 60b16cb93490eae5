"""A client of OpenRouter and of any OpenAI-compatible server, for workers of the queue."""
