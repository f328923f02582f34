# On top of base: gemini, from npm.
USER root
RUN npm install -g @google/gemini-cli && npm cache clean --force
USER agent
CMD ["gemini"]
