"""`headgate up`: everything on one machine, as separate processes under one supervisor."""
