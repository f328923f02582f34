# On top of base: claude, from npm.
USER root
RUN npm install -g @anthropic-ai/claude-code && npm cache clean --force
USER agent
CMD ["claude"]
