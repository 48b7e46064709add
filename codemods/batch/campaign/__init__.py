"""The campaign file: what it may say, what it says, and the one that ``codemod batch init`` writes."""
