# On top of base: codex, from npm.
USER root
RUN npm install -g @openai/codex && npm cache clean --force
USER agent
CMD ["codex"]
