# On top of base: opencode, from npm.
USER root
RUN npm install -g opencode-ai && npm cache clean --force
USER agent
CMD ["opencode"]
