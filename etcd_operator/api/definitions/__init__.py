"""The CustomResourceDefinitions and admission policies, made from the values of `api`."""
